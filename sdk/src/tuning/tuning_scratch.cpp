#include "tuning/tuning_scratch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tessera::detail {
namespace {

constexpr std::size_t set_granularity = 256;  // the alignment of allocations
constexpr std::size_t most_sets = 32;
/// Number of random elements made on the host; larger operands repeat them. A prime, so that no two rows are equal.
constexpr std::size_t pattern_elements = 1'048'573;

std::size_t round_up(std::size_t value) { return (value + set_granularity - 1) / set_granularity * set_granularity; }

std::int64_t vectors_of(const MatrixLayout& layout, std::int64_t rows, std::int64_t columns)
{
    return layout.row_major ? rows : columns;
}

/// Returns elements from the first to the last, gaps included. Does not overflow: the problem has been checked.
std::size_t span_of(const MatrixLayout& layout, std::int64_t rows, std::int64_t columns, std::int64_t batches)
{
    const std::int64_t vectors = vectors_of(layout, rows, columns);
    const std::int64_t run = layout.row_major ? columns : rows;
    if (vectors == 0 || run == 0) {
        return 0;
    }
    return static_cast<std::size_t>((batches - 1) * layout.batch_stride + (vectors - 1) * layout.leading_dimension +
                                    run);
}

template <class T>
void put(std::vector<std::uint8_t>& bytes, std::size_t index, float value)
{
    const T element(value);
    std::memcpy(bytes.data() + index * sizeof(T), &element, sizeof(T));
}

void put(std::vector<std::uint8_t>& bytes, std::size_t index, ElementType type, float value)
{
    switch (type) {
        case ElementType::f32: return put<float>(bytes, index, value);
        case ElementType::f16: return put<f16>(bytes, index, value);
        case ElementType::bf16: return put<bf16>(bytes, index, value);
        case ElementType::tf32: return put<tf32>(bytes, index, value);
        case ElementType::f8e4m3: return put<f8e4m3>(bytes, index, value);
        case ElementType::f8e5m2: return put<f8e5m2>(bytes, index, value);
    }
}

float get(const std::uint8_t* bytes, ElementType type)
{
    const auto read = [&]<class T>(T element) {
        std::memcpy(&element, bytes, sizeof(T));
        return static_cast<float>(element);
    };
    switch (type) {
        case ElementType::f16: return read(f16());
        case ElementType::bf16: return read(bf16());
        case ElementType::f8e4m3: return read(f8e4m3());
        case ElementType::f8e5m2: return read(f8e5m2());
        default: return read(0.0F);
    }
}

/// SplitMix64; uniform in [-1, 1].
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    float next()
    {
        state_ += 0x9E3779B97F4A7C15U;
        std::uint64_t bits = state_;
        bits = (bits ^ bits >> 30U) * 0xBF58476D1CE4E5B9U;
        bits = (bits ^ bits >> 27U) * 0x94D049BB133111EBU;
        return static_cast<float>((bits ^ bits >> 31U) >> 40U) * 0x1p-23F - 1.0F;
    }

private:
    std::uint64_t state_;
};

/// Fills device memory with random elements: first those of the host, then copies of what is already on the device.
void fill_random(StreamRef stream, std::uint8_t* data, std::size_t elements, ElementType type, std::uint64_t seed,
                 const std::source_location& caller)
{
    constexpr std::string_view operation = "Gemm::tune";
    const std::size_t made = std::min(elements, pattern_elements);
    std::vector<std::uint8_t> host(made * size_of(type));
    Random random(seed);
    for (std::size_t i = 0; i < made; ++i) {
        put(host, i, type, random.next());
    }
    check(cudaMemcpyAsync(data, host.data(), host.size(), cudaMemcpyHostToDevice, stream.get()), "cudaMemcpyAsync",
          operation, caller);
    stream.synchronize(caller);
    const std::size_t bytes = elements * size_of(type);
    for (std::size_t done = host.size(); done < bytes;) {
        const std::size_t more = std::min(done, bytes - done);
        check(cudaMemcpyAsync(data + done, data, more, cudaMemcpyDeviceToDevice, stream.get()), "cudaMemcpyAsync",
              operation, caller);
        done += more;
    }
}

/// The type of C and the pre-activation. Beside a D of 8 bits they may also be f16, which takes as long.
ElementType addend_type(const GemmProblem& problem)
{
    return is_float8(problem.output) ? ElementType::bf16 : problem.output;
}

std::size_t count_sets(const GemmProblem& problem, const Device& device, const std::source_location& caller)
{
    // Each operand has up to 2^63 bytes, so the sum of five would overflow 64 bits.
    std::size_t bytes = set_granularity;
    const auto add = [&](const MatrixLayout& layout, ElementType type, std::int64_t rows, std::int64_t columns) {
        const std::size_t more = round_up(span_of(layout, rows, columns, problem.batches) * size_of(type));
        if (__builtin_add_overflow(bytes, more, &bytes) || bytes > PTRDIFF_MAX) {
            raise(ErrorCode::size_overflow, "Gemm::tune", caller,
                  fmt::format("the total size of the operands of {} does not fit into 63 bits", problem.describe()),
                  "a smaller problem");
        }
    };
    add(problem.a, problem.input.a, problem.m, problem.k);
    add(problem.b, problem.input.b, problem.k, problem.n);
    add(problem.d, problem.output, problem.m, problem.d_columns());
    if (problem.has_c) {
        add(problem.d, addend_type(problem), problem.m, problem.n);
    }
    if (problem.has_pre_activation) {
        add(problem.d, addend_type(problem), problem.m, problem.n);
    }
    // Between two uses of a set, the others move twice the size of L2 through it.
    const std::size_t wanted = 1 + (2 * device.properties().l2_cache_bytes + bytes - 1) / bytes;
    const std::size_t fit = device.free_memory_bytes(caller) / 2 / bytes;
    return std::max<std::size_t>(std::min({wanted, most_sets, fit}), 1);
}

}  // namespace

TuningScratch::TuningScratch(StreamRef stream, const GemmProblem& problem, std::uint64_t seed,
                             const std::source_location& caller)
    : problem_(problem),
      sets_(count_sets(problem, Device(stream.device(), caller), caller)),
      a_(make(stream, problem.a, problem.input.a, problem.m, problem.k, seed, caller)),
      b_(make(stream, problem.b, problem.input.b, problem.k, problem.n, seed + 1, caller)),
      c_(problem.has_c ? make(stream, problem.d, addend_type(problem), problem.m, problem.n, seed + 2, caller)
                       : Matrix()),
      d_(make(stream, problem.d, problem.output, problem.m, problem.d_columns(), seed + 3, caller)),
      pre_activation_(problem.has_pre_activation
                          ? make(stream, problem.d, addend_type(problem), problem.m, problem.n, seed + 5, caller)
                          : Matrix())
{
    const auto make_vector = [&](DeviceBuffer<float>& vector, std::int64_t size, std::uint64_t vector_seed) {
        vector = DeviceBuffer<float>(stream, static_cast<std::size_t>(size), Allocation::automatic, caller);
        fill_random(stream, reinterpret_cast<std::uint8_t*>(vector.data()), vector.size(), ElementType::f32,
                    vector_seed, caller);
    };
    if (problem.bias != BiasAxis::none) {
        make_vector(bias_, problem.bias == BiasAxis::per_row ? problem.m : problem.n, seed + 4);
    }
    if (problem.row_scales) {
        make_vector(row_scales_, problem.m, seed + 5);
    }
    if (problem.column_scales) {
        make_vector(column_scales_, problem.n, seed + 6);
    }
    stream.synchronize(caller);
}

TuningScratch::Matrix TuningScratch::make(StreamRef stream, const MatrixLayout& layout, ElementType type,
                                          std::int64_t rows, std::int64_t columns, std::uint64_t seed,
                                          const std::source_location& caller) const
{
    // Not better aligned than the problem: kernels have faster paths for better alignment.
    const std::size_t offset = layout.address_alignment < set_granularity ? layout.address_alignment : 0;
    Matrix matrix;
    const std::size_t elements = span_of(layout, rows, columns, problem_.batches);
    matrix.set_bytes = round_up(elements * size_of(type) + offset);
    matrix.memory =
        DeviceBuffer<std::uint8_t>(stream, sets_ * matrix.set_bytes + set_granularity, Allocation::automatic, caller);
    fill_random(stream, matrix.memory.data(), sets_ * matrix.set_bytes / size_of(type), type, seed, caller);
    MatrixOperand& first = matrix.first;
    first.data = matrix.memory.data() + offset;
    first.type = type;
    first.rows = rows;
    first.columns = columns;
    first.leading_dimension = layout.leading_dimension;
    first.batches = problem_.batches;
    first.batch_stride = layout.batch_stride;
    first.row_major = layout.row_major;
    first.present = true;
    first.device = stream.device();
    return matrix;
}

MatrixOperand TuningScratch::of_set(const Matrix& matrix, std::size_t set) const
{
    MatrixOperand operand = matrix.first;
    operand.data = static_cast<const std::uint8_t*>(operand.data) + set * matrix.set_bytes;
    return operand;
}

GemmOperands TuningScratch::operands(std::size_t set) const
{
    return {of_set(a_, set), of_set(b_, set), of_set(d_, set)};
}

Epilogue TuningScratch::epilogue(std::size_t set) const
{
    Epilogue epilogue;
    if (problem_.has_c) {
        epilogue.beta = 1.0F;
        epilogue.c = of_set(c_, set);
    }
    if (problem_.bias != BiasAxis::none) {
        epilogue.bias =
            problem_.bias == BiasAxis::per_row ? Bias::per_row(bias_.span()) : Bias::per_column(bias_.span());
    }
    epilogue.activation = problem_.activation;
    if (problem_.has_pre_activation) {
        epilogue.pre_activation = of_set(pre_activation_, set);
    }
    epilogue.gating = problem_.gating;
    epilogue.scale_a = row_scales_.span();
    epilogue.scale_b = column_scales_.span();
    epilogue.fp8_accumulation = problem_.fp8_accumulation;
    epilogue.f16_accumulation = problem_.f16_accumulation;
    return epilogue;
}

void TuningScratch::poison_result(StreamRef stream) const
{
    // All ones is a NaN in each of D's types.
    check(cudaMemsetAsync(
              const_cast<void*>(d_.first.data), 0xFF,
              span_of(problem_.d, problem_.m, problem_.d_columns(), problem_.batches) * size_of(problem_.output),
              stream.get()),
          "cudaMemsetAsync", "Gemm::tune", std::source_location::current());
}

std::vector<float> TuningScratch::result(StreamRef stream) const
{
    const std::size_t bytes = size_of(problem_.output);
    std::vector<std::uint8_t> raw(span_of(problem_.d, problem_.m, problem_.d_columns(), problem_.batches) * bytes);
    check(cudaMemcpyAsync(raw.data(), d_.first.data, raw.size(), cudaMemcpyDeviceToHost, stream.get()),
          "cudaMemcpyAsync", "Gemm::tune", std::source_location::current());
    stream.synchronize();
    const std::int64_t vectors = vectors_of(problem_.d, problem_.m, problem_.d_columns());
    const std::int64_t run = problem_.d.row_major ? problem_.d_columns() : problem_.m;
    std::vector<float> values;
    values.reserve(static_cast<std::size_t>(problem_.batches * vectors * run));
    for (std::int64_t batch = 0; batch < problem_.batches; ++batch) {
        for (std::int64_t vector = 0; vector < vectors; ++vector) {
            const std::int64_t begin = batch * problem_.d.batch_stride + vector * problem_.d.leading_dimension;
            for (std::int64_t i = 0; i < run; ++i) {
                values.push_back(get(raw.data() + static_cast<std::size_t>(begin + i) * bytes, problem_.output));
            }
        }
    }
    return values;
}

}  // namespace tessera::detail
