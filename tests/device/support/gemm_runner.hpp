#pragma once

/// Runs test cases through Gemm::launch with every variant.

#include <optional>
#include <string>

#include "gemm_case.hpp"
#include "tessera/tessera.hpp"

namespace tessera::test {

/// The operands of a case in device memory.
class DeviceOperands {
public:
    DeviceOperands(StreamRef stream, const GemmCase& gemm, const GemmData& data);

    /// Gemm::launch with D as it was before any launch; the array that holds D afterwards.
    HostArray launch(Variant variant);
    /// The same through a GemmPlan.
    HostArray launch_plan(Variant variant);
    /// The array that holds D as it is now.
    HostArray download() const;
    void reset_d();

private:
    template <class Launch>
    void dispatch(const Launch& launch);

    StreamRef stream_;
    const GemmCase& gemm_;
    const GemmData& data_;
    DeviceBuffer<std::byte> a_;
    DeviceBuffer<std::byte> b_;
    DeviceBuffer<std::byte> c_;
    DeviceBuffer<std::byte> bias_;
    DeviceBuffer<std::byte> scales_;
    DeviceBuffer<std::byte> d_;
};

/// Runs `gemm` with every variant, with `automatic` and, for determinism, twice with the last one. All that run must
/// give the same bits, which must be right; those that cannot must say `variant_refused` and leave D alone. Failures go
/// to report_failure.
void check_all_variants(StreamRef stream, const GemmCase& gemm);

/// Whether the variant has a kernel for these types.
bool takes(Variant variant, InputTypes input);

/// The entry of `all_variants()` as the kernels know it: what it needs addresses and strides to be multiples of.
std::size_t required_alignment(Variant variant, InputTypes input);

}  // namespace tessera::test
