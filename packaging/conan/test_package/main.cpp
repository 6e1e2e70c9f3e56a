// Needs no GPU: what would run for one product on a B200.

#include <cstdio>
#include <tessera/tessera.hpp>

int main()
{
    const tessera::GemmProblem problem{.m = 4096, .n = 4096, .k = 512};
    std::printf("tessera %s\n", TESSERA_VERSION_STRING);
    std::fputs(tessera::GemmPlan::explain(problem, tessera::DeviceProperties::of_compute_capability(10, 0)).c_str(),
               stdout);
}
