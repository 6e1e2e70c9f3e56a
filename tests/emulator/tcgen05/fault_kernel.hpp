#pragma once

// A small kernel around one MMA for the tests of faults, and what runs it in every schedule.

#include <doctest/doctest.h>

#include "reference.hpp"
#include "tensor_kernel.hpp"

namespace tessera::emulator::test::faults {

inline const MemoryLayout swizzled{Layout::swizzle_128, false, 16, 1024};
inline constexpr std::uint32_t f16_128x64 = 0x08100010;  // kind::f16, D f32, M 128, N 64
inline constexpr unsigned b_base = 16384, image_bytes = 32768;

inline std::string descriptors(unsigned a = 0, unsigned b = b_base, std::uint64_t constant = swizzled.descriptor())
{
    return TensorKernel::descriptor("%l0", constant, a) + TensorKernel::descriptor("%l1", constant, b);
}
inline std::string mma(bool accumulate = false, std::uint32_t idesc = f16_128x64, const std::string& d = "%taddr",
                       const std::string& form = ".cta_group::1.kind::f16")
{
    return fmt::format(
        "    setp.ne.u32 %p0, {}, 0;\n    mov.b32 %a1, {:#x};\n    tcgen05.mma{} [{}], %l0, %l1, %a1, %p0;\n",
        accumulate ? 1 : 0, idesc, form, d);
}
inline std::string commit(const std::string& barrier = "control+8")
{
    return fmt::format("    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{}];\n", barrier);
}
inline std::string load(unsigned column = 0)
{
    return fmt::format(
        "    add.u32 %a0, %taddr, {};\n    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%a1}}, [%a0];\n    "
        "tcgen05.wait::ld.sync.aligned;\n",
        column);
}

inline TensorKernel good_kernel()
{
    TensorKernel kernel;
    kernel.dump_columns = 1;
    kernel.by_one = descriptors() + mma() + commit();
    return kernel;
}

inline TensorKernel::Outcome run(const TensorKernel& kernel, Schedule schedule = Schedule::in_order,
                                 std::uint64_t seed = 1)
{
    Options options;
    options.schedule = schedule;
    options.seed = seed;
    options.numerics = Numerics::fast;
    return kernel.run(std::vector<std::byte>(std::size_t{image_bytes} * kernel.ctas, std::byte{0x3C}), options);
}

/// Requires the finding under every schedule. `only`: and no finding of another kind.
inline void expect(const TensorKernel& kernel, FindingKind kind, const std::string& words = "", bool only = true)
{
    for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial}) {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            const TensorKernel::Outcome outcome = run(kernel, schedule, seed);
            std::string all;
            bool found = false;
            for (const Finding& finding : outcome.findings) {
                all += std::string(name_of(finding.kind)) + ": " + finding.message + "\n";
                found = found || (finding.kind == kind && finding.message.find(words) != std::string::npos);
                if (only) {
                    CAPTURE(finding.message);
                    CHECK(name_of(finding.kind) == name_of(kind));
                }
            }
            CAPTURE(all);
            CAPTURE(static_cast<int>(schedule));
            CAPTURE(outcome.result.message);
            CHECK(found);
        }
    }
}

inline void expect_clean(const TensorKernel& kernel)
{
    for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial}) {
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
            const TensorKernel::Outcome outcome = run(kernel, schedule, seed);
            CHECK(outcome.result.message == "");
            for (const Finding& finding : outcome.findings) {
                CAPTURE(static_cast<int>(schedule));
                CAPTURE(seed);
                CAPTURE(finding.message);
                CHECK(name_of(finding.kind) == "none");
            }
        }
    }
}

inline TensorKernel pair_kernel()
{
    TensorKernel kernel = good_kernel();
    kernel.cta_group = kernel.ctas = 2;
    kernel.by_one = descriptors() + mma(false, 0x10100010, "%taddr", ".cta_group::2.kind::f16") + kernel.commit();
    return kernel;
}

}  // namespace tessera::emulator::test::faults
