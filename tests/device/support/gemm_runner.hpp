#pragma once

/// Runs test cases through Gemm::launch with every variant.

#include <functional>
#include <optional>
#include <string>

#include "gemm_case.hpp"
#include "support/variants.hpp"
#include "tessera/tessera.hpp"

namespace tessera::test {

/// The operands of a case in device memory.
class DeviceOperands {
public:
    DeviceOperands(StreamRef stream, const GemmCase& gemm, const GemmData& data);

    /// Gemm::launch with D as it was before any launch; the array that holds D afterwards.
    HostArray launch(Variant variant);
    /// What is to be computed.
    GemmProblem problem() const;
    /// The same through a GemmPlan.
    HostArray launch_plan(Variant variant);
    /// The same through `enqueue`, which gets the operands unchecked.
    using Enqueue = std::function<void(const detail::GemmOperands&, const Epilogue&)>;
    HostArray launch(const Enqueue& enqueue);
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

/// Runs `gemm` with every variant and, for determinism, twice with `automatic`. All that run must be right, and SIMT
/// kernels must give the same bits; those that cannot must say `variant_refused` and leave D alone. Failures go to
/// report_failure.
void check_all_variants(StreamRef stream, const GemmCase& gemm);

/// Whether the current device and this build have a kernel of the variant for these types, orders and alignments.
bool takes(Variant variant, const GemmCase& gemm, const GemmData& data);

/// How the variant adds up on the current device; of `automatic`, the least exact that it may choose.
Summation summation_of(Variant variant, const GemmCase& gemm);

}  // namespace tessera::test
