// The header in C++11.

#include "tessera.h"
#include "tessera_distributed.h"

extern "C" int version_in_cpp(void);
int version_in_cpp(void)
{
    tessera_epilogue epilogue{};
    epilogue.size = sizeof(epilogue);
    return tessera_version();
}
