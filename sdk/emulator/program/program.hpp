#pragma once

// A module's code, ready to execute.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/kernel_info.hpp"
#include "base/source_place.hpp"
#include "program/effects.hpp"
#include "program/operation.hpp"
#include "ptx/ast.hpp"

namespace tessera::emulator {

/// The contents of a row of the warp's own constants.
enum class WarpConstant : std::uint8_t {
    tid_x,
    tid_y,
    tid_z,
    ntid_x,
    ntid_y,
    ntid_z,
    ctaid_x,
    ctaid_y,
    ctaid_z,
    nctaid_x,
    nctaid_y,
    nctaid_z,
    laneid,
    warpid,
    nwarpid,
    smid,
    nsmid,
    gridid,
    lanemask_eq,
    lanemask_le,
    lanemask_lt,
    lanemask_ge,
    lanemask_gt,
    clusterid_x,
    clusterid_y,
    clusterid_z,
    nclusterid_x,
    nclusterid_y,
    nclusterid_z,
    cluster_ctaid_x,
    cluster_ctaid_y,
    cluster_ctaid_z,
    cluster_nctaid_x,
    cluster_nctaid_y,
    cluster_nctaid_z,
    cluster_ctarank,
    cluster_nctarank,
    is_explicit_cluster,
    total_smem_size,
    dynamic_smem_size,
    aggr_smem_size,
    shared_address,  ///< of a static shared variable: `offset` bytes into the CTA's shared memory, as this CTA sees it
    dynamic_shared_address,  ///< of an `extern .shared` array
};

struct WarpConstantRow {
    WarpConstant what;
    std::uint32_t offset = 0;  ///< shared_address: bytes; dynamic: the variable's alignment
    unsigned bytes = 4;        ///< 2, 4 or 8: width of the row's values
    Ref row = 0;
};

/// A variable in the `.param` or `.local` space of a function's frame.
struct FrameVariable {
    std::uint32_t offset = 0, size = 0;
};

struct FunctionCode {
    std::string name;
    bool kernel = false;
    std::uint32_t entry = 0;                         ///< index of its first operation
    std::uint32_t end = 0;                           ///< one past its last
    std::uint32_t register_bytes = 0;                ///< of a frame
    std::vector<RegisterRow> rows;                   ///< in these bytes
    std::uint32_t parameter_bytes = 0;               ///< per lane: formal and local .param variables
    std::uint32_t local_bytes = 0;                   ///< per lane: .local variables
    std::vector<FrameVariable> results, parameters;  ///< a .func's formal ones, in its frame's param area
    const ptx::Function* source = nullptr;
};

struct Program {
    ptx::Module module;                 ///< the operations point into it
    std::vector<Operation> operations;  ///< of all functions, one after the other
    EffectsTable effects;               ///< of the operations
    std::vector<FunctionCode> functions;
    std::vector<std::unique_ptr<Payload>> payloads;
    std::vector<std::byte> constants;  ///< rows
    std::vector<WarpConstantRow> warp_constants;
    std::uint32_t warp_constant_bytes = 0;
    std::map<std::string, KernelInfo, std::less<>> kernels;
    std::map<std::string, std::uint32_t, std::less<>> kernel_functions;  ///< index in `functions`
    std::map<std::string, VariableInfo, std::less<>> variables;

    /// The operations with the handlers of `set`. Thread-safe.
    [[nodiscard]] const std::vector<Operation>& operations_with(Handlers set) const;

    /// The source lines of an instruction, innermost first; function names are mangled. Empty without .loc.
    [[nodiscard]] std::vector<SourceFrame> frames_of(const ptx::Location& location) const;
    /// `text` with the source line added after each "PTX line 12".
    [[nodiscard]] std::string with_places(std::string_view text) const;

private:
    mutable std::mutex mutex_;
    mutable std::array<std::vector<Operation>, handler_sets> operations_with_;  // empty until wanted
};

/// Function pointers are this value plus the index of the function.
inline constexpr std::uint64_t function_base = 0x00F0'0000'0000'0000;

}  // namespace tessera::emulator
