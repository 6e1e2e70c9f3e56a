/// Scenario 3: a matrix of samples in an .npy file is multiplied by a layer's weights.

#include <unistd.h>

#include <array>

#include "npy.hpp"
#include "scenarios/operands.hpp"
#include "tessera/gemm.hpp"
#include "tessera/pinned_buffer.hpp"

namespace tessera::scenarios {
namespace {

struct Sizes {
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t outputs;
    std::int64_t chunk;  // rows read at a time
};

/// A file that is removed at the end.
class ScratchFile {
public:
    explicit ScratchFile(const std::filesystem::path& folder)
        : path_(folder / fmt::format("tessera-scenarios-{}.npy", ::getpid()))
    {}
    ~ScratchFile()
    {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;
    const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

/// A chunk on its way: read by the host, copied, multiplied.
struct Slot {
    PinnedBuffer<f16> rows;
    DeviceBuffer<f16> x;
    Event multiplied;
};

}  // namespace

Outcome run_npy_streaming(const Context& context)
{
    const Sizes sizes = context.full ? Sizes{524288, 1024, 16, 16384} : Sizes{300, 64, 16, 64};
    const auto out_elements = static_cast<std::size_t>(sizes.rows * sizes.outputs);
    Outcome outcome;
    outcome.work = fmt::format("{}x{} f16 in a file of {:.4g} MB, multiplied by {}x{}; chunks of {} rows", sizes.rows,
                               sizes.columns, static_cast<double>(sizes.rows * sizes.columns) * sizeof(f16) * 1e-6,
                               sizes.columns, sizes.outputs, sizes.chunk);
    outcome.notes.push_back("the file was just written, so that it is read from the page cache");

    const auto x = npy::matrix(sizes.rows, sizes.columns, normal_values<f16>(context, sizes.rows * sizes.columns, 1));
    const ScratchFile file(context.scratch);
    npy::write(file.path(), x);

    const Stream stream(context.device), copies(context.device);
    const auto host_w =
        normal_values<f16>(context, sizes.columns * sizes.outputs, 2, 1 / std::sqrt(static_cast<float>(sizes.columns)));
    const auto w = DeviceBuffer<f16>::from_host(stream, host_w);
    DeviceBuffer<f16> whole(stream, static_cast<std::size_t>(sizes.rows * sizes.columns));
    DeviceBuffer<float> d(stream, out_elements), d_of_chunks(stream, out_elements);
    d.fill(stream, poison<float>());
    d_of_chunks.fill(stream, poison<float>());
    const auto multiply = [&](const DeviceBuffer<f16>& from, std::int64_t rows, DeviceSpan<float> to) {
        Gemm::launch(stream, from.matrix(rows, sizes.columns), w.matrix(sizes.columns, sizes.outputs),
                     to.matrix(rows, sizes.outputs));
    };
    std::array<Slot, 3> slots;
    for (Slot& slot : slots) {
        const auto elements = static_cast<std::size_t>(sizes.chunk * sizes.columns);
        slot = {PinnedBuffer<f16>(elements), DeviceBuffer<f16>(copies, elements), Event(context.device)};
    }
    copies.synchronize();

    const auto baseline = [&](Recorder& recorder) {
        npy::Array<f16> read;
        recorder.on_host("read", [&] { read = npy::read<f16>(file.path()); });
        recorder.on_stream("copy", stream, [&] { whole.copy_from(read.elements); });
        recorder.on_stream("product", stream, [&] { multiply(whole, sizes.rows, d.span()); });
        stream.synchronize();
    };
    const auto optimized = [&](Recorder& recorder) {
        npy::RowReader<f16> reader(file.path());
        std::int64_t first = 0;
        for (std::size_t chunk = 0; first < reader.rows(); ++chunk) {
            Slot& slot = slots[chunk % slots.size()];
            std::int64_t rows = 0;
            // Writing to the pinned buffer waits for the copy that still reads it.
            recorder.on_host("read", [&] { rows = reader.read(slot.rows.span()); });
            copies.wait(slot.multiplied);
            recorder.on_stream("copy", copies, [&] { slot.x.copy_from_async(copies, slot.rows); });
            stream.wait(copies);
            recorder.on_stream("product", stream, [&] {
                multiply(slot.x, rows, d_of_chunks.subspan(static_cast<std::size_t>(first * sizes.outputs)));
            });
            slot.multiplied.record(stream);
            first += rows;
        }
        stream.synchronize();
    };
    measure(context, outcome, baseline, optimized);

    const bench::Problem problem =
        product_of(sizes.rows, sizes.outputs, sizes.columns, ElementType::f16, ElementType::f32);
    outcome.checks.push_back(check_product<f16, float>(context, "baseline against float64", problem, x.elements, host_w,
                                                       d.to_vector(), bench::Accumulation::tensor_core));
    outcome.checks.push_back(check_product<f16, float>(context, "optimized against float64", problem, x.elements,
                                                       host_w, d_of_chunks.to_vector(),
                                                       bench::Accumulation::tensor_core));
    const auto bytes = static_cast<double>(sizes.rows * sizes.columns) * sizeof(f16);
    outcome.figures.push_back(
        {"from the file to the result, baseline", bytes / median_of(outcome.baseline) * 1e-9, "GB/s"});
    outcome.figures.push_back(
        {"from the file to the result, optimized", bytes / median_of(outcome.optimized) * 1e-9, "GB/s"});
    return outcome;
}

}  // namespace tessera::scenarios
