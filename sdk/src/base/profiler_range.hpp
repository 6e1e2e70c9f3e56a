#pragma once

/// Names launches in the timelines of profilers (Nsight Systems and others that support NVTX): one range around the
/// CUDA calls, named after the variant and the problem.
///
/// Without a profiler NVTX returns no domain. A range then costs one load and one branch, and no text is formatted.
///
/// CUDA's profilers attach before the program starts, so the library asks once.

#include <fmt/format.h>

#include <nvtx3/nvToolsExt.h>

#include <string>

#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// The domain of all ranges of this library, or null if no profiler is attached.
inline nvtxDomainHandle_t profiler_domain() noexcept
{
    static const nvtxDomainHandle_t domain = nvtxDomainCreateA("tessera");
    return domain;
}

/// While it exists, the calling thread is in the range.
class ProfilerRange {
public:
    ProfilerRange(const GemmProblem& problem, Variant variant)
    {
        if (domain_ != nullptr) [[unlikely]] {
            begin(problem, variant);
        }
    }
    ~ProfilerRange()
    {
        if (domain_ != nullptr) [[unlikely]] {
            nvtxDomainRangePop(domain_);
        }
    }
    ProfilerRange(const ProfilerRange&) = delete;
    ProfilerRange& operator=(const ProfilerRange&) = delete;

private:
    void begin(const GemmProblem& problem, Variant variant)
    {
        const std::string text = fmt::format("{}: {}", to_string(variant), problem.describe());
        nvtxEventAttributes_t attributes{};
        attributes.version = NVTX_VERSION;
        attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
        attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
        attributes.message.ascii = text.c_str();
        nvtxDomainRangePushEx(domain_, &attributes);
    }

    nvtxDomainHandle_t domain_ = profiler_domain();
};

}  // namespace tessera::detail
