/// Prints what machine_code.py cannot see in machine code, one line per tensor-core kernel:
///
///     blackwell <configuration> <operands> <dynamic shared memory, bytes> <columns of tensor memory> <CTAs of a group> <MMAs>
///     hopper    <configuration> <operands> <dynamic shared memory, bytes>
///
/// where MMAs is the number of instructions per stage.

#include <fmt/format.h>

#include <array>
#include <utility>

#include "kernels/blackwell/blackwell_kernels.hpp"
#include "kernels/hopper/hopper_kernels.hpp"

using namespace tessera;
using namespace tessera::kernels;

namespace {

constexpr std::array operand_sizes{std::pair{2, "16-bit"}, std::pair{4, "tf32"}, std::pair{1, "8-bit"}};

constexpr std::uint32_t instruction_k_bytes = 32;  // per row, whatever the type

void print_blackwell()
{
    for (const auto& [bytes, operands] : operand_sizes) {
        for (const BlackwellKernel& kernel : blackwell_kernels(static_cast<std::size_t>(bytes))) {
            const BlackwellConfig& config = *kernel.config;
            fmt::print("blackwell {} {} {} {} {} {}\n", kernel.name(), operands, kernel.shared_bytes,
                       config.tensor_memory_columns(), config.group_size(),
                       config.m_tiles * BlackwellConfig::stage_row_bytes / instruction_k_bytes);
        }
    }
}

void print_hopper()
{
    for (const auto& [bytes, operands] : operand_sizes) {
        for (const HopperKernel& kernel : hopper_kernels(static_cast<std::size_t>(bytes))) {
            fmt::print("hopper {} {} {}\n", kernel.name, operands, kernel.shared_bytes);
        }
    }
}

}  // namespace

int main()
{
    print_blackwell();
    print_hopper();
    return 0;
}
