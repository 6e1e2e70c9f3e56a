#pragma once

/// Runs test cases with Gemm::launch and every variant.

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

    /// Calls Gemm::launch with a fresh D, and returns the array with D afterwards.
    HostArray launch(Variant variant);
    /// Returns the problem.
    GemmProblem problem() const;
    /// The same with a GemmPlan.
    HostArray launch_plan(Variant variant);
    /// The same with `enqueue`, which gets the operands unchecked.
    using Enqueue = std::function<void(const detail::GemmOperands&, const Epilogue&)>;
    HostArray launch(const Enqueue& enqueue);
    /// Returns the array with the current D.
    HostArray download() const;
    /// Returns the array with the current pre-activation; empty if it is not stored.
    HostArray download_pre_activation() const;
    /// Returns the current largest magnitude of D.
    float download_amax() const;
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
    DeviceBuffer<std::byte> pre_activation_;
};

/// Runs `gemm` with every variant and, to test determinism, twice with `automatic`. Every variant that runs must be
/// right, and SIMT kernels must give the same bits. The others must refuse with `variant_refused` and not write D.
/// Failures go to report_failure.
void check_all_variants(StreamRef stream, const GemmCase& gemm);

/// Returns true if the current device and this build have a kernel of the variant for these types, orders and
/// alignments.
bool takes(Variant variant, const GemmCase& gemm, const GemmData& data);

/// Returns how the variant sums on the current device; for `automatic`, the least exact of its choices.
Summation summation_of(Variant variant, const GemmCase& gemm);

}  // namespace tessera::test
