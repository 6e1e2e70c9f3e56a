// Where TMA puts elements, chunk by chunk of 16 bytes: for chapters 2 and 5. TMA loads a matrix of numbers, and shared memory is
// printed as it is.
#include <tessera/device/mma.cuh>
#include <tessera/device/tma.cuh>

#include "course/course.hpp"

using namespace tessera;

using Element = std::uint16_t;  // as wide as bf16, and exact
constexpr unsigned line = 64;   // elements of 128 bytes
constexpr unsigned chunk = 8;   // elements of 16 bytes

// [kernel]
/// Copies the bytes of a tile that TMA has loaded to `out`, without undoing the swizzle. 32 threads.
template <class Map>
__global__ void dump(const __grid_constant__ Map map, DeviceSpan<Element> out)
{
    using Tile = SharedTile<Element, typename Map::box_type, Map::swizzle>;
    __shared__ Tile tile;
    __shared__ RingBarriers<FilledByTma, FreedByThreads, 1> stage;
    const auto published = publish_barriers(
        [&](const BarrierInitializer& by) { stage.initialize(by, {.producers = 1, .consumers = 32}); });
    RingProducer producer(stage, published);
    RingConsumer consumer(stage, published);
    producer.fill([&](auto& slot) { tma_load(map, tile, slot, {0, 0}); });
    auto filled = consumer.wait();
    const auto* const elements = reinterpret_cast<const Element*>(tile.raw_swizzled_bytes());
    for (unsigned i = threadIdx.x; i < Tile::size_bytes / sizeof(Element); i += 32) {
        out[i] = elements[i];
    }
    std::move(filled).release();
}
// [end]

/// Prints which row and column of the matrix each chunk of shared memory has.
template <Swizzle Pattern>
void print(const char* name)
{
    constexpr unsigned lines = 8;
    using Map = TensorMap<Element, Box<line, lines>, Pattern>;
    const Stream stream;
    std::vector<Element> numbers(lines * line);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = static_cast<Element>(i);
    }
    const auto matrix = DeviceBuffer<Element>::from_host(stream, numbers);
    DeviceBuffer<Element> out(stream, numbers.size());
    const auto map = Map::encode(Device::current(), {matrix.span().data(), {line, lines}, {line * sizeof(Element)}});
    launch(dump<Map>, LaunchConfig(stream, {1}, {32}), map, out.span());
    const auto memory = out.to_vector();
    std::printf("%s\n", name);
    for (unsigned i = 0; i < lines; ++i) {
        std::printf("  bytes %4u:", i * 128);
        for (unsigned j = 0; j < line; j += chunk) {
            const unsigned number = memory[i * line + j];
            std::printf("  %u,%-2u", number / line, number % line);
        }
        std::printf("\n");
    }
}

/// Prints where the descriptors of a stage's four instructions begin.
template <class Layout>
void print_descriptors(const char* name)
{
    const auto tile = tcgen05_descriptor<Layout>(0);
    std::printf("%s:", name);
    for (unsigned k = 0; k < 64; k += 16) {
        std::printf("  k %u at +%u bytes", k, static_cast<unsigned>(tile.from_k(k).bits() & 0x3FFF) * 16);
    }
    std::printf("\n");
}

int main()
{
    return examples::run_example("layouts", [] {
        print<Swizzle::none>("without a swizzle: row,column of the chunk at each 16 bytes");
        print<Swizzle::b128>("Swizzle::b128");
        print_descriptors<SharedLayout<Major::k, Swizzle::b128, 128, 64, 2>>("K-major (128, 64)");
        print_descriptors<SharedLayout<Major::mn, Swizzle::b128, 128, 64, 2>>("N-major (128, 64)");
        return examples::exit_success;
    });
}
