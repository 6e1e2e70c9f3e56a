// Prints the SDK's version and its choice for one product on a B200. Needs no GPU.

#include <cstdio>
#include <string>
#include <tessera/tessera.hpp>

int main()
{
    const tessera::GemmProblem problem{
        .m = 4096, .n = 4096, .k = 512, .input = tessera::ElementType::bf16, .output = tessera::ElementType::bf16};
    const auto b200 = tessera::DeviceProperties::of_compute_capability(10, 0);
    std::printf("tessera %d.%d.%d\n", tessera::version.major, tessera::version.minor, tessera::version.patch);
    std::fputs(tessera::GemmPlan::explain(problem, b200).c_str(), stdout);
}
