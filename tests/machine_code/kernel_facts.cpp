/// Prints what machine_code.py cannot see in machine code, one line per tensor-core kernel:
///
///     blackwell <rung> <operands> <dynamic shared memory, bytes> <columns of tensor memory> <CTAs of a group> <MMAs>
///     hopper    <configuration> <operands> <dynamic shared memory, bytes>
///
/// where MMAs is the number of instructions per stage.

#include <fmt/format.h>

#include <array>
#include <utility>

#include "kernels/blackwell/blackwell_kernels.hpp"
#include "kernels/hopper/hopper_kernels.hpp"
#include "tessera/gemm.hpp"  // to_string(Variant)

using namespace tessera;
using namespace tessera::kernels;

namespace {

constexpr std::array blackwell_operands{std::pair{MmaKind::f16, "16-bit"}, std::pair{MmaKind::tf32, "tf32"},
                                        std::pair{MmaKind::f8f6f4, "8-bit"}};
constexpr std::array hopper_operands{std::pair{2, "16-bit"}, std::pair{4, "tf32"}, std::pair{1, "8-bit"}};

constexpr std::uint32_t instruction_k_bytes = 32;  // per row, whatever the type

void print_blackwell()
{
    for (int index = 0; index < blackwell_rungs; ++index) {
        const auto rung = static_cast<BlackwellRung>(index);
        const auto variant = static_cast<Variant>(static_cast<int>(Variant::blackwell_tiled) + index);
        const std::string_view name = to_string(variant).substr(std::string_view("blackwell_").size());
        const BlackwellConfig& config = blackwell_config(rung);
        for (const auto& [kind, operands] : blackwell_operands) {
            const BlackwellKernel kernel = blackwell_kernel(rung, kind);
            if (kernel.function != nullptr) {
                fmt::print("blackwell {} {} {} {} {} {}\n", name, operands, kernel.shared_bytes,
                           config.tensor_memory_columns(), config.group_size(),
                           config.m_tiles * BlackwellConfig::stage_row_bytes / instruction_k_bytes);
            }
        }
    }
}

void print_hopper()
{
    for (const auto& [bytes, operands] : hopper_operands) {
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
