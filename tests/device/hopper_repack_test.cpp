/// Repacking of operands that TMA cannot address or the tensor core cannot read: the copies, byte by byte, and products
/// on them, launched one after the other and captured. hopper_test.cpp runs the configurations on them. Needs a device
/// of compute capability 9.0, or the emulated one.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <source_location>
#include <vector>

#include "gemm/gemm_operands.hpp"
#include "gemm/hopper/hopper_chooser.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "gemm/hopper/hopper_repack.hpp"
#include "support/gemm_runner.hpp"
#include "support/hopper_device.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;
using detail::KernelChoice;
using kernels::Repacking;

namespace {

Stream& stream()
{
    static Stream instance;
    return instance;
}

/// Matrices to repack, in elements.
struct Source {
    std::size_t element_bytes;
    std::int64_t lines;
    std::int64_t run;
    std::int64_t gap;     // between lines
    std::int64_t offset;  // of the first element from an aligned address
    std::int64_t batches;
    std::int64_t batch_gap;
    bool transposes;

    std::int64_t stride() const { return run + gap; }
    std::int64_t batch_stride() const { return lines * stride() + batch_gap; }
    std::int64_t size() const { return offset + (batches - 1) * batch_stride() + (lines - 1) * stride() + run; }
    std::string describe() const
    {
        return fmt::format("{} matrices of {} lines of {} elements of {} bytes, {} between lines, offset {}{}", batches,
                           lines, run, element_bytes, gap, offset, transposes ? ", transposed" : "");
    }
};

/// A source in device memory, and its copy. The gaps of the source are uninitialized, and its memory ends with the last
/// element.
class OnDevice {
public:
    OnDevice(const Source& source, std::mt19937_64& engine)
        : source_(source),
          host_(static_cast<std::size_t>(source.size()) * source.element_bytes),
          copied_line_((bytes(source.transposes ? source.lines : source.run) + 127) / 128 * 128),
          copied_lines_(source.transposes ? source.run : source.lines),
          memory_(stream(), host_.size()),
          copy_(stream(), static_cast<std::size_t>(copied_line_ * copied_lines_ * source.batches) + guard)
    {
        std::generate(host_.begin(), host_.end(), [&] { return static_cast<std::byte>(engine()); });
        for (std::int64_t batch = 0; batch < source.batches; ++batch) {
            const auto first = static_cast<std::size_t>(bytes(source.offset + batch * source.batch_stride()));
            REQUIRE(cudaMemcpy2DAsync(
                        memory_.data() + first, static_cast<std::size_t>(bytes(source.stride())), host_.data() + first,
                        static_cast<std::size_t>(bytes(source.stride())), static_cast<std::size_t>(bytes(source.run)),
                        static_cast<std::size_t>(source.lines), cudaMemcpyHostToDevice, stream().get()) == cudaSuccess);
        }
        copy_.fill(stream(), untouched);
        stream().synchronize();
    }

    Repacking repacking()
    {
        return {.source = memory_.data() + bytes(source_.offset),
                .copy = copy_.data(),
                .source_stride = bytes(source_.stride()),
                .source_batch_stride = bytes(source_.batch_stride()),
                .copy_stride = copied_line_,
                .copy_batch_stride = copied_line_ * copied_lines_,
                .lines = source_.lines,
                .run = source_.run,
                .batches = source_.batches,
                .transposes = source_.transposes};
    }

    /// Describes the first wrong element of the copy, if any.
    std::optional<std::string> find_wrong_element() const
    {
        std::vector<std::byte> copy(copy_.size());
        copy_.copy_to(copy);
        for (std::int64_t batch = 0; batch < source_.batches; ++batch) {
            for (std::int64_t line = 0; line < source_.lines; ++line) {
                for (std::int64_t i = 0; i < source_.run; ++i) {
                    const std::int64_t from =
                        bytes(source_.offset + batch * source_.batch_stride() + line * source_.stride() + i);
                    const std::int64_t to = (batch * copied_lines_ + (source_.transposes ? i : line)) * copied_line_ +
                                            bytes(source_.transposes ? line : i);
                    if (std::memcmp(host_.data() + from, copy.data() + to, source_.element_bytes) != 0) {
                        return fmt::format("element {} of line {} of matrix {} is wrong", i, line, batch);
                    }
                }
            }
        }
        if (std::any_of(copy.end() - guard, copy.end(), [](std::byte byte) { return byte != untouched; })) {
            return "memory after the copy was overwritten";
        }
        return std::nullopt;
    }

private:
    static constexpr std::byte untouched{0xA5};
    static constexpr std::ptrdiff_t guard = 256;

    std::int64_t bytes(std::int64_t elements) const
    {
        return elements * static_cast<std::int64_t>(source_.element_bytes);
    }

    Source source_;
    std::vector<std::byte> host_;
    std::int64_t copied_line_;
    std::int64_t copied_lines_;
    DeviceBuffer<std::byte> memory_;
    DeviceBuffer<std::byte> copy_;
};

void check_copies(std::span<const Source> sources, std::mt19937_64& engine)
{
    std::vector<OnDevice> operands;
    std::vector<Repacking> repackings;
    for (const Source& source : sources) {
        repackings.push_back(operands.emplace_back(source, engine).repacking());
    }
    trace(sources.front().describe());
    CHECK(kernels::repack(repackings, sources.front().element_bytes, stream().get()) == cudaSuccess);
    for (std::size_t i = 0; i < sources.size(); ++i) {
        if (const auto wrong = operands[i].find_wrong_element()) {
            report_failure(sources[i].size(), sources[i].describe(), *wrong);
        }
    }
}

/// Returns the smallest choice that loads by TMA: it repacks operands that TMA cannot load.
KernelChoice repacking_choice(const GemmProblem& problem, bool stream_k)
{
    std::vector<KernelChoice> candidates = detail::hopper_candidates(problem, device());
    const auto table = kernels::hopper_kernels(size_of(problem.input));
    std::erase_if(candidates, [&](const KernelChoice& choice) {
        return table[choice.config].copies || choice.stream_k != stream_k;
    });
    REQUIRE_FALSE(candidates.empty());
    return *std::min_element(candidates.begin(), candidates.end(),
                             [](const KernelChoice& one, const KernelChoice& other) {
                                 const auto ctas = [](const KernelChoice& c) {
                                     return c.clusters * c.cluster_m * c.cluster_n * c.cluster_k;
                                 };
                                 return ctas(one) < ctas(other);
                             });
}

void enqueue(StreamRef on, const detail::GemmOperands& operands, const KernelChoice& choice)
{
    detail::enqueue_gemm(on, operands, {}, detail::problem_of(operands, {}), device(), choice, "hopper_repack_test",
                         std::source_location::current());
}

/// Returns a product with two operands that TMA cannot load.
GemmCase odd_case(InputTypes input)
{
    GemmCase gemm;
    gemm.m = 301;
    gemm.n = 203;
    gemm.k = 707;
    gemm.input = input;
    gemm.a.padding = gemm.b.padding = 2;
    gemm.b.row_major = false;
    gemm.data = Data::random;
    return gemm;
}

}  // namespace

TEST_CASE("a repacked copy equals the operand at any alignment, order and extent")
{
    if (!is_hopper_here()) {
        return;
    }
    std::mt19937_64 engine = random_engine(11);
    const auto any = [&](std::initializer_list<std::int64_t> values) {
        return values.begin()[engine() % values.size()];
    };
    for (const std::size_t element_bytes : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
        const auto elements = [&](std::int64_t bytes) { return bytes / static_cast<std::int64_t>(element_bytes); };
        const auto any_source = [&] {
            const std::int64_t lines = any({1, 2, 3, 7, 9, 31, 33, elements(128), elements(128) + 1, 131});
            return Source{.element_bytes = element_bytes,
                          .lines = lines,
                          // The last one has more chunks than a CTA has threads.
                          .run = any({1, 3, 4, elements(16), elements(32) + 1, elements(48) - 1, 67, 128, 129, 259,
                                      lines < 10 ? elements(2200) + 1 : 200}),
                          .gap = any({0, 0, 1, 2, elements(16), 5}),
                          .offset = any({0, 0, 1, 3, elements(16), elements(8)}),
                          .batches = any({1, 1, 2, 3}),
                          .batch_gap = any({0, 1, 7}),
                          .transposes = element_bytes != 2 && engine() % 2 == 0};
        };
        for (int launch = 0; launch < (quick() ? 20 : 200); ++launch) {
            const std::array sources{any_source(), any_source()};
            check_copies(std::span(sources).first(1 + engine() % 2), engine);
        }
    }
}

TEST_CASE("a large product with odd leading dimensions is repacked and right")
{
    if (!is_hopper_here()) {
        return;
    }
    for (const InputTypes input :
         {InputTypes(ElementType::bf16), InputTypes(ElementType::f8e4m3),
          InputTypes(ElementType::f8e5m2, ElementType::f8e4m3), InputTypes(ElementType::tf32)}) {
        for (const bool transposed : {false, true}) {
            GemmCase gemm = odd_case(input);
            gemm.k = 2003;
            gemm.a.row_major = !transposed;
            const GemmData data = GemmData::make(gemm, Guards::front_only, seed());
            DeviceOperands operands(stream(), gemm, data);
            const GemmPlan plan = GemmPlan::prepare(Device::current(), operands.problem());
            CHECK_MESSAGE(plan.explain().find("A and B repacked") != std::string::npos, plan.explain());
            CHECK(plan.workspace_bytes() >= detail::repacked_bytes(operands.problem()));
            const HostArray result = operands.launch(Variant::automatic);
            if (const auto wrong = find_wrong_element(gemm, data, result, summation_of(Variant::hopper, gemm))) {
                report_failure(gemm.size(), gemm.describe(), *wrong);
            }
            CHECK(operands.launch_plan(Variant::automatic).bytes() == result.bytes());
        }
    }
}

TEST_CASE("nothing is repacked if alpha is 0")
{
    if (!is_hopper_here()) {
        return;
    }
    GemmCase gemm = odd_case(ElementType::f16);
    gemm.alpha = 0;  // A and B are NaN
    gemm.addend = Addend::separate;
    gemm.beta = 0.5F;
    const GemmData data = GemmData::make(gemm, Guards::front_only, seed());
    DeviceOperands operands(stream(), gemm, data);
    for (const bool stream_k : {false, true}) {
        const KernelChoice choice = repacking_choice(operands.problem(), stream_k);
        const HostArray result = operands.launch([&](const auto& given, const Epilogue& epilogue) {
            const Graph graph = Graph::capture(stream(), [&](StreamRef captured) {
                detail::enqueue_gemm(captured, given, epilogue, detail::problem_of(given, epilogue), device(), choice,
                                     "hopper_repack_test", std::source_location::current());
            });
            CHECK(graph.node_count() == 1);
            graph.launch(stream());
            stream().synchronize();
        });
        if (const auto wrong = find_wrong_element(gemm, data, result, summation_of(Variant::hopper, gemm))) {
            report_failure(gemm.size(), gemm.describe(), *wrong);
        }
    }
}

TEST_CASE("successive products on repacked operands wait for each other, captured or not")
{
    if (!is_hopper_here()) {
        return;
    }
    // D1 = I * B = B; D2 = D1 * C. TMA can address no line of 97, 131 or 83 elements.
    constexpr std::int64_t rows = 97;
    constexpr std::int64_t inner = 131;
    constexpr std::int64_t columns = 83;
    std::mt19937_64 engine = random_engine(12);
    const auto random_matrix = [&](std::int64_t count) {
        std::vector<bf16> values(static_cast<std::size_t>(count));
        std::generate(values.begin(), values.end(), [&] { return bf16(static_cast<float>(engine() % 7) - 3.0F); });
        return values;
    };
    std::vector<bf16> identity(rows * rows, bf16(0.0F));
    for (std::size_t i = 0; i < rows; ++i) {
        identity[i * rows + i] = bf16(1.0F);
    }
    const auto unit = DeviceBuffer<bf16>::from_host(stream(), identity);
    const auto b = DeviceBuffer<bf16>::from_host(stream(), random_matrix(rows * inner));
    const auto c = DeviceBuffer<bf16>::from_host(stream(), random_matrix(inner * columns));
    DeviceBuffer<bf16> d1(stream(), rows * inner);
    DeviceBuffer<float> d2(stream(), rows * columns);
    const detail::GemmOperands first{unit.matrix(rows, rows), b.matrix(rows, inner), d1.matrix(rows, inner)};
    const detail::GemmOperands second{d1.matrix(rows, inner), c.matrix(inner, columns), d2.matrix(rows, columns)};
    const detail::GemmOperands direct{b.matrix(rows, inner), c.matrix(inner, columns), d2.matrix(rows, columns)};

    const KernelChoice first_choice = repacking_choice(detail::problem_of(first, {}), false);
    const KernelChoice second_choice = repacking_choice(detail::problem_of(second, {}), false);
    enqueue(stream(), direct, second_choice);
    const std::vector<float> expected = d2.to_vector();
    const auto chain = [&](StreamRef on) {
        for (int turn = 0; turn < 3; ++turn) {
            enqueue(on, first, first_choice);
            enqueue(on, second, second_choice);
        }
    };
    const auto poison = [&] {
        d1.fill(stream(), bf16(std::numeric_limits<float>::quiet_NaN()));
        d2.fill(stream(), 0.0F);
    };
    poison();
    chain(stream());
    CHECK(d2.to_vector() == expected);
    const Graph graph = Graph::capture(stream(), chain);
    CHECK(graph.node_count() == 12);
    for (int replay = 0; replay < 2; ++replay) {
        poison();
        graph.launch(stream());
        CHECK(d2.to_vector() == expected);
    }
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
