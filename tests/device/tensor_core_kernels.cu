#include "tensor_core_kernels.hpp"

#include <utility>

#include "tessera/device/accumulator.cuh"
#include "tessera/device/mma.cuh"
#include "tessera/device/tma.cuh"

namespace tessera::test {

namespace {

constexpr unsigned rows_of_cta = 128;
using Layout = SharedLayout<Major::k, Swizzle::b128, rows_of_cta, 128, 1>;  // in bytes
constexpr unsigned step_bytes = 32;
constexpr unsigned first_operand_column = 256;  // after the accumulator

template <CtaGroup Group>
constexpr unsigned ctas = Group == CtaGroup::pair ? 2 : 1;

/// Stores the calling thread's row of 128, swizzled.
__device__ void store_row(std::byte* tile, DeviceSpan<const RowChunk> rows, unsigned first_row)
{
    for (unsigned chunk = 0; chunk < row_chunks; ++chunk) {
        *reinterpret_cast<RowChunk*>(tile + Layout::offset(threadIdx.x, chunk * 16)) =
            rows[(first_row + threadIdx.x) * row_chunks + chunk];
    }
}

template <CtaGroup Group>
__device__ void synchronize_group()
{
    if constexpr (Group == CtaGroup::pair) {
        ClusterGrid::synchronize();
    } else {
        __syncthreads();
    }
}

/// Allocates, calls `prepare(tensor_memory)` in all threads, then `multiply(tensor_memory, accumulator)` in one thread
/// of the first CTA, and writes d.
template <CtaGroup Group, class Prepare, class Multiply>
__device__ void run_product(DeviceSpan<float> d, Prepare prepare, Multiply multiply)
{
    constexpr unsigned n = product_size(Group);
    __shared__ RingBarriers<AccumulatorFull, AccumulatorEmpty, 1, Group> ring;
    __shared__ TmemSlot slot;
    const unsigned warp = threadIdx.x / 32;
    const ClusterGrid cluster(ctas<Group>, 1);
    const auto published = publish_barriers_to_cluster([&](const BarrierInitializer& by) {
        ring.initialize(by, {.producers = 1, .consumers = ctas<Group> * product_threads / 32});
    });
    auto tensor_memory = [&] {
        Tmem<Unallocated, 512, Group> unallocated(slot);
        if constexpr (Group == CtaGroup::pair) {
            return std::move(unallocated).allocate(warp == 0, published);
        } else {
            return std::move(unallocated).allocate(warp == 0);
        }
    }();
    const auto accumulator = tensor_memory.template accumulator<n>(0);
    prepare(tensor_memory);
    make_visible_to_tma();  // and to the tensor core
    tcgen05_fence_before_sync();
    synchronize_group<Group>();
    tcgen05_fence_after_sync();
    if (warp == 0 && cluster.row() == 0) {
        auto product = RingProducer(ring, published).acquire();
        const bool elected = elect_one();
        if (elected) {
            multiply(tensor_memory, accumulator);
        }
        if constexpr (Group == CtaGroup::pair) {
            publish_after_mma(std::move(product), accumulator, elected, published.ready(cluster.my_column()));
        } else {
            publish_after_mma(std::move(product), accumulator, elected);
        }
    }
    __syncwarp();
    auto sums = read_accumulators<n>(ring, published, tensor_memory).wait();
    for (unsigned column = 0; column < n; column += 16) {
        const auto values = sums.template load_rows<16>(warp, column).wait();
        for (unsigned j = 0; j < 16; ++j) {
            d[(cluster.row() * rows_of_cta + threadIdx.x) * n + column + j] = values[j];
        }
    }
    std::move(sums).release();
    if constexpr (Group == CtaGroup::pair) {
        const PairFinished finished = tensor_memory.finish_pair();
        std::move(tensor_memory).release(warp == 0, finished);
    } else {
        std::move(tensor_memory).release(warp == 0);
    }
}

/// Returns the descriptor of an instruction's operand of elements of 1 or 2 bytes.
template <unsigned ElementBytes>
__device__ auto descriptor_of(const std::byte* tile, unsigned step)
{
    using Operand = SharedLayout<Major::k, Swizzle::b128, rows_of_cta, 128 / ElementBytes, ElementBytes>;
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile));
    return tcgen05_descriptor<Operand>(address).from_k(step * step_bytes / ElementBytes);
}

template <MmaKind Kind, ScaleVector Vector, CtaGroup Group>
__device__ constexpr auto scaled_instruction()
{
    constexpr auto type = Kind == MmaKind::mxf8f6f4 ? OperandType::e4m3 : OperandType::e2m1;
    constexpr auto scale = Vector == ScaleVector::x4 ? ScaleType::ue4m3 : ScaleType::ue8m0;
    return InstructionDescriptor::builder()
        .template shape<product_size(Group), product_size(Group)>()
        .template a<type>()
        .template b<type>()
        .template accumulate<float>()
        .template block_scale<Kind, scale>()
        .template scale_vector<Vector>()
        .build();
}

template <MmaKind Kind, ScaleVector Vector, CtaGroup Group>
__global__ void __launch_bounds__(product_threads, 1)
    scaled_product(DeviceSpan<const RowChunk> a, DeviceSpan<const RowChunk> b, DeviceSpan<const std::uint8_t> a_scales,
                   DeviceSpan<const std::uint8_t> b_scales, DeviceSpan<float> d)
{
    constexpr unsigned n = product_size(Group);
    constexpr unsigned of_step = static_cast<unsigned>(Vector);  // factors per row and step
    constexpr unsigned words = of_step * product_steps / 4;
    constexpr unsigned steps_of_word = 4 / of_step;
    struct Storage {
        alignas(1024) std::byte a[Layout::bytes];
        alignas(1024) std::byte b[Layout::bytes];
        SharedScales<rows_of_cta> a_scales[words];
        SharedScales<n> b_scales[words];
    };
    static_assert(sizeof(Storage) <= product_shared_bytes);
    extern __shared__ __align__(1024) std::byte shared_memory[];
    auto& storage = *reinterpret_cast<Storage*>(shared_memory);
    const unsigned first_row = ClusterGrid(ctas<Group>, 1).row() * rows_of_cta;

    const auto prepare = [&](auto&) {
        store_row(storage.a, a, first_row);
        store_row(storage.b, b, first_row);
        for (unsigned word = 0; word < words; ++word) {
            for (unsigned i = 0; i < 4; ++i) {
                const auto factor = [&](DeviceSpan<const std::uint8_t> scales, unsigned row) {
                    return static_cast<std::byte>(scales[row * words * 4 + word * 4 + i]);
                };
                storage.a_scales[word].bytes[SharedScales<rows_of_cta>::offset(threadIdx.x, i)] =
                    factor(a_scales, first_row + threadIdx.x);
                for (unsigned row = threadIdx.x; row < n; row += product_threads) {
                    storage.b_scales[word].bytes[SharedScales<n>::offset(row, i)] = factor(b_scales, row);
                }
            }
        }
    };
    const auto multiply = [&](auto& tensor_memory, const auto& accumulator) {
        constexpr auto instruction = scaled_instruction<Kind, Vector, Group>();
        const auto step = [&]<unsigned Step>(std::integral_constant<unsigned, Step>) {
            constexpr unsigned word = Step / steps_of_word;
            constexpr unsigned columns = SharedScales<rows_of_cta>::blocks * 4;
            constexpr unsigned first_a = first_operand_column + word * columns;
            constexpr unsigned first_b = first_operand_column + words * columns + word * SharedScales<n>::blocks * 4;
            const auto scales_of_a = tensor_memory.template scales<ScaledOperand::a, rows_of_cta, first_a>();
            const auto scales_of_b = tensor_memory.template scales<ScaledOperand::b, n, first_b>();
            if constexpr (Step % steps_of_word == 0) {
                copy_scales(scales_of_a, storage.a_scales[word]);
                copy_scales(scales_of_b, storage.b_scales[word]);
            }
            mma(accumulator, descriptor_of<1>(storage.a, Step), descriptor_of<1>(storage.b, Step),
                instruction.template with_scales_of_step<Step % steps_of_word>(), scales_of_a, scales_of_b,
                Step == 0 ? Accumulate::overwrite : Accumulate::add);
        };
        [&]<unsigned... Steps>(std::integer_sequence<unsigned, Steps...>) {
            (step(std::integral_constant<unsigned, Steps>{}), ...);
        }(std::make_integer_sequence<unsigned, product_steps>{});
    };
    run_product<Group>(d, prepare, multiply);
}

template <CtaGroup Group>
__global__ void __launch_bounds__(product_threads, 1)
    tensor_memory_product(DeviceSpan<const RowChunk> a, DeviceSpan<const RowChunk> b, DeviceSpan<float> d)
{
    extern __shared__ __align__(1024) std::byte tile[];
    const unsigned first_row = ClusterGrid(ctas<Group>, 1).row() * rows_of_cta;
    const unsigned warp = threadIdx.x / 32;
    const auto operand_of = [](auto& tensor_memory) {
        return tensor_memory.template operand<product_steps, first_operand_column>();
    };

    const auto prepare = [&](auto& tensor_memory) {
        store_row(tile, b, first_row);
        for (unsigned step = 0; step < product_steps; ++step) {
            RegisterTile<std::uint32_t, 8> row;
            for (unsigned half = 0; half < 2; ++half) {
                const RowChunk chunk = a[(first_row + threadIdx.x) * row_chunks + 2 * step + half];
                for (unsigned i = 0; i < 4; ++i) {
                    row[4 * half + i] = chunk.bytes[4 * i] | chunk.bytes[4 * i + 1] << 8 |
                                        chunk.bytes[4 * i + 2] << 16 |
                                        static_cast<std::uint32_t>(chunk.bytes[4 * i + 3]) << 24;
                }
            }
            operand_of(tensor_memory).store_rows(warp, step, row);
        }
        tcgen05_wait_stores();
    };
    const auto multiply = [&](auto& tensor_memory, const auto& accumulator) {
        constexpr auto instruction = InstructionDescriptor::builder()
                                         .template shape<product_size(Group), product_size(Group)>()
                                         .template a<f16>()
                                         .template b<f16>()
                                         .template accumulate<float>()
                                         .a_in_tensor_memory()
                                         .build();
        for (unsigned step = 0; step < product_steps; ++step) {
            mma(accumulator, operand_of(tensor_memory), step, descriptor_of<2>(tile, step), instruction,
                step == 0 ? Accumulate::overwrite : Accumulate::add);
        }
    };
    run_product<Group>(d, prepare, multiply);
}

// ---- a pipeline of typed maps and tiles

constexpr unsigned stage_k = 64;

template <unsigned Rows>
using StageMap = TensorMap<f16, Box<stage_k, Rows>, Swizzle::b128>;
template <unsigned Rows>
using StageTile = SharedTile<f16, Box<stage_k, Rows>, Swizzle::b128>;

/// The numbers of a cluster of `Ctas` CTAs or of pairs of them.
template <CtaGroup Group, unsigned Ctas>
struct Pipeline {
    static constexpr unsigned groups = Ctas / ctas<Group>;
    static constexpr unsigned b_rows = pipelined_n / ctas<Group>;  // in a CTA
    static constexpr unsigned share = b_rows / groups;             // that it loads

    static constexpr unsigned stages = 2;
    StageTile<rows_of_cta> a[stages];
    StageTile<share> b[stages][groups];
    RingBarriers<FilledByTma, FreedByTensorCore, stages, Group> ring;
    RingBarriers<AccumulatorFull, AccumulatorEmpty, 1, Group> sums;
    TmemSlot slot;
};

template <CtaGroup Group, unsigned Ctas>
__global__ void __launch_bounds__(product_threads, 1)
    pipelined_product(const __grid_constant__ StageMap<rows_of_cta> a_map,
                      const __grid_constant__ StageMap<Pipeline<Group, Ctas>::share> b_map, DeviceSpan<float> d)
{
    using Storage = Pipeline<Group, Ctas>;
    constexpr unsigned groups = Storage::groups;
    static_assert(sizeof(Storage) <= 2 * product_shared_bytes);
    extern __shared__ __align__(1024) std::byte shared_memory[];
    auto& storage = *reinterpret_cast<Storage*>(shared_memory);
    const unsigned warp = threadIdx.x / 32;
    const ClusterGrid cluster(Ctas, 1);
    const unsigned place = cluster.row() % ctas<Group>;
    const auto published = publish_barriers_to_cluster([&](const BarrierInitializer& by) {
        storage.ring.initialize(by, {.producers = 1, .consumers = groups});
        storage.sums.initialize(by, {.producers = 1, .consumers = ctas<Group> * product_threads / 32});
    });
    auto tensor_memory = [&] {
        Tmem<Unallocated, pipelined_n, Group> unallocated(storage.slot);
        if constexpr (Group == CtaGroup::pair) {
            return std::move(unallocated).allocate(warp == 0, published);
        } else {
            return std::move(unallocated).allocate(warp == 0);
        }
    }();
    const auto accumulator = tensor_memory.template accumulator<pipelined_n>(0);
    constexpr unsigned steps = pipelined_k / stage_k;

    if (warp == 0) {
        RingProducer producer(storage.ring, published);
        for (unsigned step = 0; step < steps; ++step) {
            producer.fill([&](auto& slot) {
                tma_load(a_map, storage.a[slot.index()], slot, {step * stage_k, cluster.row() * rows_of_cta});
                const unsigned first_row = place * Storage::b_rows;
                if constexpr (groups == 1) {
                    tma_load(b_map, storage.b[slot.index()][0], slot, {step * stage_k, first_row});
                } else {
                    const unsigned part = cluster.row() / ctas<Group>;
                    const CtaMask sharers = Group == CtaGroup::pair ? cluster.my_place_in_pairs() : cluster.my_column();
                    tma_load_multicast(b_map, storage.b[slot.index()][part], slot,
                                       {step * stage_k, first_row + part * Storage::share}, published.ready(sharers));
                }
            });
        }
        std::move(producer).drain();
    } else if (warp == 1 && place == 0) {
        using LayoutOfB = SharedLayout<Major::k, Swizzle::b128, Storage::b_rows, stage_k, sizeof(f16)>;
        constexpr auto instruction = InstructionDescriptor::builder()
                                         .template shape<rows_of_cta * ctas<Group>, pipelined_n>()
                                         .template a<f16>()
                                         .template b<f16>()
                                         .template accumulate<float>()
                                         .build();
        const auto multiply = [&](auto& consumer, unsigned step, auto... receivers) {
            multiply_slot(
                consumer, accumulator,
                [&](const auto& slot) {
                    const auto a_tile = operand_descriptor<Major::k>(storage.a[slot.index()]);
                    const auto b_tile = tcgen05_descriptor<LayoutOfB>(static_cast<std::uint32_t>(
                        __cvta_generic_to_shared(storage.b[slot.index()][0].raw_swizzled_bytes())));
                    for (unsigned k = 0; k < stage_k; k += 16) {
                        mma(accumulator, a_tile.from_k(k), b_tile.from_k(k), instruction,
                            step + k == 0 ? Accumulate::overwrite : Accumulate::add);
                    }
                },
                receivers...);
        };
        auto sum = RingProducer(storage.sums, published).acquire();
        RingConsumer consumer(storage.ring, published);
        for (unsigned step = 0; step < steps; ++step) {
            if constexpr (Ctas > 1) {
                multiply(consumer, step, published.ready(cluster.my_column()));
            } else {
                multiply(consumer, step);
            }
        }
        if constexpr (Group == CtaGroup::pair) {
            publish_after_mma(std::move(sum), accumulator, elect_one(), published.ready(ClusterGrid::my_pair()));
        } else {
            publish_after_mma(std::move(sum), accumulator, elect_one());
        }
    }
    __syncwarp();
    auto sums = read_accumulators<pipelined_n>(storage.sums, published, tensor_memory).wait();
    for (unsigned column = 0; column < pipelined_n; column += 64) {
        const auto values = sums.template load_rows<64>(warp, column).wait();
        for (unsigned j = 0; j < 64; ++j) {
            d[(cluster.row() * rows_of_cta + threadIdx.x) * pipelined_n + column + j] = values[j];
        }
    }
    std::move(sums).release();
    if constexpr (Group == CtaGroup::pair) {
        const PairFinished finished = tensor_memory.finish_pair();
        std::move(tensor_memory).release(warp == 0, finished);
    } else {
        ClusterGrid::synchronize();
        std::move(tensor_memory).release(warp == 0);
    }
}

template <CtaGroup Group, unsigned Ctas>
void launch_pipeline(StreamRef stream, const DeviceBuffer<f16>& a, const DeviceBuffer<f16>& b, DeviceBuffer<float>& d)
{
    using Storage = Pipeline<Group, Ctas>;
    launch(pipelined_product<Group, Ctas>,
           LaunchConfig(stream, {Ctas}, {product_threads}).cluster({Ctas}).shared_memory_bytes(sizeof(Storage)),
           StageMap<rows_of_cta>::of(a.matrix(Ctas * rows_of_cta, pipelined_k)),
           StageMap<Storage::share>::of(b.matrix(pipelined_n, pipelined_k)), d.span());
}

template <CtaGroup Group>
ScaledProduct scaled_product_of_group(MmaKind kind, ScaleVector vector)
{
    switch (kind) {
        case MmaKind::mxf8f6f4: return scaled_product<MmaKind::mxf8f6f4, ScaleVector::x1, Group>;
        case MmaKind::mxf4: return scaled_product<MmaKind::mxf4, ScaleVector::x2, Group>;
        default: break;
    }
    return vector == ScaleVector::x2 ? scaled_product<MmaKind::mxf4nvf4, ScaleVector::x2, Group>
                                     : scaled_product<MmaKind::mxf4nvf4, ScaleVector::x4, Group>;
}

}  // namespace

ScaledProduct scaled_product_kernel(MmaKind kind, ScaleVector vector, CtaGroup group)
{
    return group == CtaGroup::pair ? scaled_product_of_group<CtaGroup::pair>(kind, vector)
                                   : scaled_product_of_group<CtaGroup::one>(kind, vector);
}

void launch_pipelined_product(StreamRef stream, CtaGroup group, unsigned ctas, const DeviceBuffer<f16>& a,
                              const DeviceBuffer<f16>& b, DeviceBuffer<float>& d)
{
    if (group == CtaGroup::pair) {
        (ctas == 2 ? launch_pipeline<CtaGroup::pair, 2> : launch_pipeline<CtaGroup::pair, 4>)(stream, a, b, d);
    } else {
        (ctas == 1 ? launch_pipeline<CtaGroup::one, 1> : launch_pipeline<CtaGroup::one, 2>)(stream, a, b, d);
    }
}

TensorMemoryProduct tensor_memory_product_kernel(CtaGroup group)
{
    return group == CtaGroup::pair ? tensor_memory_product<CtaGroup::pair> : tensor_memory_product<CtaGroup::one>;
}

}  // namespace tessera::test
