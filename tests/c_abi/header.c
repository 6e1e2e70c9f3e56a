/* The header in C11, with every warning: structures are values, and 0 is their default. */

#include "tessera.h"

#include "tessera.h" /* twice */
#include "tessera_distributed.h"

_Static_assert(sizeof(tessera_matrix) == 80, "a change breaks every program that was compiled before");
_Static_assert(sizeof(tessera_vector) == 24, "a change breaks every program that was compiled before");
_Static_assert(offsetof(tessera_epilogue, size) == 0 && offsetof(tessera_options, size) == 0, "the size comes first");
_Static_assert(sizeof(tessera_epilogue) == 184, "members may be added at the end, not elsewhere");
_Static_assert(offsetof(tessera_epilogue, f16_accumulation) == 176, "members stay where they are");

int version_in_cpp(void);

int main(void)
{
    tessera_epilogue epilogue = {.size = sizeof epilogue};
    const tessera_options options = {.size = sizeof options, .variant = TESSERA_AUTOMATIC};
    const int is_default =
        epilogue.activation == TESSERA_NO_ACTIVATION && epilogue.c == NULL && options.workspace == NULL;
    return is_default && tessera_version() == version_in_cpp() ? 0 : 1;
}
