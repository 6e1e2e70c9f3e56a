/// Scenario 1: chunks of activations go to the device, through one layer of a network, and back.

#include "scenarios/operands.hpp"
#include "tessera/gemm.hpp"
#include "tessera/pinned_buffer.hpp"

namespace tessera::scenarios {
namespace {

struct Sizes {
    std::size_t chunks;
    std::int64_t rows;  // of a chunk
    std::int64_t inputs;
    std::int64_t outputs;
};

/// What an engine of the device does at a time, with a buffer of its own.
struct Slot {
    DeviceBuffer<bf16> x;
    DeviceBuffer<bf16> y;
    Event uploaded;
    Event multiplied;
    Event downloaded;
};

}  // namespace

Outcome run_transfers(const Context& context)
{
    const Sizes sizes = context.full ? Sizes{32, 4096, 2048, 2048} : Sizes{4, 48, 64, 64};
    const auto in_elements = static_cast<std::size_t>(sizes.rows * sizes.inputs);
    const auto out_elements = static_cast<std::size_t>(sizes.rows * sizes.outputs);
    Outcome outcome;
    outcome.work = fmt::format("{} chunks of {}x{} bf16, each multiplied by {}x{}", sizes.chunks, sizes.rows,
                               sizes.inputs, sizes.inputs, sizes.outputs);

    const Stream compute(context.device), uploads(context.device), downloads(context.device);
    const auto host_w =
        normal_values<bf16>(context, sizes.inputs * sizes.outputs, 1, 1 / std::sqrt(static_cast<float>(sizes.inputs)));
    const auto w = DeviceBuffer<bf16>::from_host(compute, host_w);
    std::vector<std::vector<bf16>> pageable_x, pageable_y;
    std::vector<PinnedBuffer<bf16>> pinned_x, pinned_y;
    for (std::size_t i = 0; i < sizes.chunks; ++i) {
        pageable_x.push_back(normal_values<bf16>(context, sizes.rows * sizes.inputs, 2 + i));
        pageable_y.emplace_back(out_elements, poison<bf16>());
        std::copy(pageable_x[i].begin(), pageable_x[i].end(), pinned_x.emplace_back(in_elements).begin());
        std::copy(pageable_y[i].begin(), pageable_y[i].end(), pinned_y.emplace_back(out_elements).begin());
    }
    constexpr std::size_t slots = 2;
    std::vector<Slot> slot;
    for (std::size_t i = 0; i < slots; ++i) {
        slot.push_back({DeviceBuffer<bf16>(compute, in_elements), DeviceBuffer<bf16>(compute, out_elements),
                        Event(context.device), Event(context.device), Event(context.device)});
    }
    const auto multiply = [&](Slot& at) {
        Gemm::launch(compute, at.x.matrix(sizes.rows, sizes.inputs), w.matrix(sizes.inputs, sizes.outputs),
                     at.y.matrix(sizes.rows, sizes.outputs));
    };

    const auto baseline = [&](Recorder& recorder) {
        for (std::size_t i = 0; i < sizes.chunks; ++i) {
            recorder.on_stream("upload", compute, [&] { slot[0].x.copy_from(pageable_x[i]); });
            recorder.on_stream("product", compute, [&] {
                multiply(slot[0]);
                compute.synchronize();
            });
            recorder.on_stream("download", compute, [&] { slot[0].y.copy_to(pageable_y[i]); });
        }
    };
    const auto optimized = [&](Recorder& recorder) {
        for (std::size_t i = 0; i < sizes.chunks; ++i) {
            Slot& at = slot[i % slots];
            if (i >= slots) {
                uploads.wait(at.multiplied);  // x is free
                compute.wait(at.downloaded);  // y is free
            }
            recorder.on_stream("upload", uploads, [&] { at.x.copy_from_async(uploads, pinned_x[i]); });
            at.uploaded.record(uploads);
            compute.wait(at.uploaded);
            recorder.on_stream("product", compute, [&] { multiply(at); });
            at.multiplied.record(compute);
            downloads.wait(at.multiplied);
            recorder.on_stream("download", downloads, [&] { at.y.copy_to_async(downloads, pinned_y[i]); });
            at.downloaded.record(downloads);
        }
        downloads.synchronize();
    };
    compute.synchronize();
    measure(context, outcome, baseline, optimized);

    std::size_t differing = 0;
    for (std::size_t i = 0; i < sizes.chunks; ++i) {
        const std::vector<bf16> y(pinned_y[i].begin(), pinned_y[i].end());
        differing += equal_bits("", bytes_of(pageable_y[i]), bytes_of(y)).passed() ? 0 : 1;
    }
    outcome.checks.push_back({"every chunk of both entries", "the same bits",
                              differing == 0 ? 0.0 : std::numeric_limits<double>::infinity()});
    const std::size_t last = sizes.chunks - 1;
    const std::vector<bf16> y(pinned_y[last].begin(), pinned_y[last].end());
    outcome.checks.push_back(check_product<bf16, bf16>(
        context, "the last chunk against float64",
        product_of(sizes.rows, sizes.outputs, sizes.inputs, ElementType::bf16, ElementType::bf16), pageable_x[last],
        host_w, y, bench::Accumulation::tensor_core));
    const double bytes = static_cast<double>(sizes.chunks * in_elements) * sizeof(bf16);
    for (const auto& [name, times] :
         {std::pair("upload, pageable", &outcome.baseline), std::pair("upload, pinned", &outcome.optimized)}) {
        outcome.figures.push_back({name, bytes / times->phases[0].device_seconds * 1e-9, "GB/s"});
    }
    return outcome;
}

}  // namespace tessera::scenarios
