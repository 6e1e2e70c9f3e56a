/// A kernel that uses tensor memory after its release, leaves without a release, keeps an accumulator, or takes a part of an output
/// tile that is outside of it is stopped with a message. The device's context
/// is lost afterwards, so each mistake is its own process: handle_mistake_test <mistake>.

#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include "tessera/device/accumulator.cuh"
#include "tessera/device/clc.cuh"
#include "tessera/device/mma.cuh"
#include "tessera/device/output_partition.cuh"
#include "tessera/tessera.hpp"

using namespace tessera;

namespace {

constexpr int exit_skipped = 77;
constexpr std::array<std::string_view, 8> mistakes{"none",           "read_after_release", "released_twice",
                                                   "never_released", "moved_from",         "leaves_early",
                                                   "part_outside",   "accumulator_kept"};

// NOLINTBEGIN(bugprone-use-after-move, clang-analyzer-cplusplus.Move): these are the mistakes
/// `mistake` is a run-time value, so that the compiler cannot refuse the kernel.
__global__ void make_mistake(int mistake, DeviceSpan<float> out)
{
    __shared__ TmemSlot slot;
    const bool first_warp = threadIdx.x < 32;
    using Accumulators = RingBarriers<AccumulatorFull, AccumulatorEmpty, 1>;
    __shared__ Accumulators ring;
    const auto published =
        publish_barriers([&](const BarrierInitializer& by) { ring.initialize(by, {.producers = 1, .consumers = 2}); });
    auto memory = Tmem<Unallocated, 32, CtaGroup::one>(slot).allocate(first_warp);
    if (first_warp) {
        publish_after_mma(RingProducer(ring, published).acquire(), memory.accumulator<32>(0), elect_one());
    }
    auto sums = read_accumulators<32>(ring, published, memory).wait();
    if (mistake != 7) {
        std::move(sums).release();
    }
    if (mistake == 5) {
        return;
    }
    const OutputTile<128, 256> tile = OutputPartition<128, 256>(1024, 1024, 1).tile(SingleWorkQueue().first());
    if (mistake == 6) {
        out[0] = static_cast<float>(tile.part<32, 64>(0, static_cast<unsigned>(mistake) - 2).first_column());
    }
    if (mistake == 4) {
        auto owner = std::move(memory);
        out[0] = static_cast<float>(memory.accumulator<32>(0).address());
        std::move(owner).release(first_warp);
        return;
    }
    if (mistake != 3) {
        std::move(memory).release(first_warp);
    }
    if (mistake == 1) {
        out[0] = static_cast<float>(memory.accumulator<32>(0).address());
    }
    if (mistake == 2) {
        std::move(memory).release(first_warp);
    }
}
// NOLINTEND(bugprone-use-after-move, clang-analyzer-cplusplus.Move)

}  // namespace

int main(int argc, char** argv)
{
    if (Device::count() == 0 || Device::current().properties().compute_capability_major != 10) {
        std::printf("skipped: this test needs compute capability 10\n");
        return exit_skipped;
    }
    for (std::size_t mistake = 0; mistake < mistakes.size(); ++mistake) {
        if (argc != 2 || mistakes[mistake] != argv[1]) {
            continue;
        }
        const Stream stream;
        DeviceBuffer<float> out(stream, 1);
        launch(make_mistake, LaunchConfig(stream, {1}, {64}), static_cast<int>(mistake), out.span());
        try {
            stream.synchronize();
        } catch (const Error& error) {
            std::printf("%s\n", error.what());
            return error.code() == ErrorCode::context_lost && mistake != 0 ? 0 : 1;
        }
        return mistake == 0 ? 0 : 1;
    }
    std::printf("usage: handle_mistake_test <mistake>\n");
    return 2;
}
