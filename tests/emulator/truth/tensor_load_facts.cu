// Facts about loads through tensor maps: where bytes are written, what is filled in, how many bytes are signalled, and
// what the encoder accepts.

#include <algorithm>

#include "device_ptx.cuh"
#include "facts.hpp"
#include "tensor_map.hpp"

namespace tessera::truth {
namespace {

constexpr unsigned stage_bytes = 4096;
constexpr unsigned barrier_offset = stage_bytes;
constexpr unsigned shared_bytes = stage_bytes + 16;

/// Loads one box to `offset` in an untouched stage and expects this many bytes. out: the stage; completed: whether the
/// phase completed.
template <int rank>
__global__ void load_box(const __grid_constant__ CUtensorMap map, Coordinates at, unsigned offset, unsigned expected,
                         unsigned char* out, unsigned* completed)
{
    extern __shared__ __align__(1024) unsigned char stage[];
    for (unsigned i = threadIdx.x; i < stage_bytes; i += blockDim.x) {
        stage[i] = untouched;
    }
    const std::uint32_t barrier = shared_address(stage + barrier_offset);
    if (threadIdx.x == 0) {
        barrier_init(barrier, 1);
    }
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        arrive_expect(barrier, expected);
        tensor_load<rank>(shared_address(stage + offset), &map, at, barrier);
        *completed = wait_bounded(barrier, 0);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < stage_bytes; i += blockDim.x) {
        out[i] = stage[i];
    }
}

struct Loaded {
    std::string error;  ///< empty if there was none
    bool completed = false;
    std::vector<unsigned char> stage;

    [[nodiscard]] std::vector<std::uint32_t> words(unsigned count) const
    {
        std::vector<std::uint32_t> result(count);
        std::memcpy(result.data(), stage.data(), count * sizeof(std::uint32_t));
        return result;
    }
};

Loaded load(const CUtensorMap& map, unsigned rank, const Coordinates& at, unsigned offset, unsigned expected)
{
    const DeviceArray<unsigned char> out(std::vector<unsigned char>(stage_bytes, 0));
    const DeviceArray<unsigned> completed(std::vector<unsigned>{0});
    constexpr unsigned threads = 128;
    const auto start = [&](auto kernel) {
        kernel<<<1, threads, shared_bytes>>>(map, at, offset, expected, out.data(), completed.data());
    };
    rank == 1 ? start(load_box<1>) : rank == 2 ? start(load_box<2>) : start(load_box<3>);
    Loaded loaded;
    loaded.error = outcome();
    if (loaded.error.empty()) {
        loaded.completed = completed.values()[0] != 0;
        loaded.stage = out.values();
    }
    return loaded;
}

unsigned product(const std::vector<std::uint32_t>& box)
{
    unsigned elements = 1;
    for (const std::uint32_t extent : box) {
        elements *= extent;
    }
    return elements;
}

/// Words or halfwords that count from `first`.
template <typename Element>
std::vector<Element> counting(std::size_t count, Element first)
{
    std::vector<Element> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = static_cast<Element>(first + i);
    }
    return values;
}

/// Tests that a load completes exactly this many bytes, and shows what arrived. (With fewer expected, the phase may or
/// may not complete in passing, because the bytes are signalled in pieces.)
template <typename Describe>
std::string completions(const CUtensorMap& map, unsigned rank, const Coordinates& at, unsigned offset, unsigned bytes,
                        Describe describe)
{
    constexpr unsigned more = 16;
    const Loaded loaded = load(map, rank, at, offset, bytes);
    const Loaded waiting = loaded.error.empty() ? load(map, rank, at, offset, bytes + more) : loaded;
    if (!waiting.error.empty()) {
        return waiting.error;
    }
    return std::to_string(bytes) + (loaded.completed && !waiting.completed ? " bytes: " : " is not the bytes: ") +
           describe(loaded);
}

// ---- placement ----

constexpr unsigned source_pitch = 256;  ///< bytes of a row of the source
constexpr unsigned source_rows = 16;

/// For each unit of shared memory from `begin` on: row and column of the unit written there, a hexadecimal digit each.
std::string placement(const std::vector<unsigned char>& stage, unsigned begin, unsigned unit)
{
    std::string text =
        std::any_of(stage.begin(), stage.begin() + begin, [](unsigned char byte) { return byte != untouched; })
            ? "(bytes before it, too) "
            : "";
    for (std::size_t at = begin; at < stage_bytes; at += unit) {
        std::uint16_t halves[8] = {};
        std::memcpy(halves, stage.data() + at, unit);
        bool together = halves[0] * 2U % unit == 0, kept = true;
        for (unsigned i = 0; i < unit / 2; ++i) {
            together = together && halves[i] == halves[0] + i;
            kept = kept && halves[i] == (untouched_word & 0xFFFF);
        }
        const unsigned byte = halves[0] * 2U;
        text += kept ? "--" : !together ? "??" : hex(byte / source_pitch, 1) + hex(byte % source_pitch / unit, 1);
    }
    return text.substr(0, text.find_last_not_of('-') + 1);
}

void ask_placement(Facts& facts, int)
{
    const DeviceArray<std::uint16_t> source(counting<std::uint16_t>(source_pitch * source_rows / 2, 0));
    const auto ask = [&](const SwizzleMode& swizzle, const ElementType& type, unsigned width, unsigned offset) {
        const unsigned rows = std::min(source_rows, 1024 / width);
        const std::string name = "tensor load, swizzle " + std::string(swizzle.name) + ", " + type.name + ", box of " +
                                 std::to_string(width) + " bytes x " + std::to_string(rows) + ", at " +
                                 std::to_string(offset);
        CUtensorMap map{};
        if (const CUresult status = encode({.type = type.type,
                                            .address = source.data(),
                                            .extents = {source_pitch / type.bytes, source_rows},
                                            .strides = {source_pitch},
                                            .box = {width / type.bytes, rows},
                                            .swizzle = swizzle.mode},
                                           map);
            status != CUDA_SUCCESS) {
            facts.add(name, "encoder: " + std::to_string(static_cast<int>(status)));
            return;
        }
        facts.add(name, completions(map, 2, {}, offset, width * rows, [&](const Loaded& loaded) {
                      return placement(loaded.stage, offset, swizzle.unit);
                  }));
    };
    const ElementType& u8 = element_types[0];
    for (const SwizzleMode& swizzle : swizzle_modes) {
        const unsigned widest = swizzle.span == 0 ? 128 : swizzle.span;
        for (unsigned offset = 0; offset < 1024; offset += 128) {
            ask(swizzle, u8, widest, offset);
        }
        for (unsigned width = 16; width < widest; width += 16) {
            ask(swizzle, u8, width, 0);
            ask(swizzle, u8, width, 128);
        }
        for (const unsigned type : {1U, 2U, 4U, 6U}) {
            ask(swizzle, element_types[type], widest, 0);
            ask(swizzle, element_types[type], widest, 384);
        }
    }
}

// ---- out of bounds, strides, coordinates ----

void ask_fill(Facts& facts, int)
{
    // Two rows of 32 bytes; the box begins 16 bytes before the start of the first row and ends one row after the last.
    const DeviceArray<std::uint32_t> source(counting<std::uint32_t>(16, 1));
    for (const ElementType& type : element_types) {
        for (const auto fill : {CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA}) {
            const std::string name = std::string("tensor load, out of bounds, ") + type.name +
                                     (fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ? ", zeros" : ", NaN");
            CUtensorMap map{};
            const CUresult status = encode({.type = type.type,
                                            .address = source.data(),
                                            .extents = {32 / type.bytes, 2},
                                            .strides = {32},
                                            .box = {32 / type.bytes, 2},
                                            .fill = fill},
                                           map);
            if (status != CUDA_SUCCESS) {
                facts.add(name, "encoder: " + std::to_string(static_cast<int>(status)));
                continue;
            }
            const Loaded loaded = load(map, 2, {{-16 / static_cast<int>(type.bytes), 1}}, 0, 64);
            facts.add(name, loaded.error.empty() ? runs(loaded.words(18)) : loaded.error);
        }
    }
}

constexpr Coordinates starts_of_boxes[] = {
    {{0, 0}},
    {{4, 0}},
    {{0, 6}},
    {{4, 6}},
    {{-4, -2}},
    {{8, 0}},
    {{0, 8}},
    {{-8, 0}},
    {{0, -4}},
    {{1000, -1000}},
    {{-2147483647 - 1, 0}},
    {{2147483644, 2147483647}},
    // Not at a multiple of 16 bytes.
    {{1, 0}},
    {{-1, 0}},
    {{3, 5}},
    {{7, -3}},
};

void ask_transactions(Facts& facts, int index)
{
    const Coordinates& start = starts_of_boxes[index];
    const DeviceArray<std::uint32_t> source(counting<std::uint32_t>(8 * 8, 1));
    const CUtensorMap map = encoded({.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                                     .address = source.data(),
                                     .extents = {8, 8},
                                     .strides = {32},
                                     .box = {8, 4}});
    constexpr unsigned full = 128;
    facts.add(
        "tensor load, u32 box 8x4 of 8x8 from {" + std::to_string(start.c[0]) + ", " + std::to_string(start.c[1]) + "}",
        completions(map, 2, start, 0, full, [](const Loaded& loaded) { return runs(loaded.words(33)); }));
}

/// A map, the start of the box, and what arrived; `bytes` if fewer than in the box.
void ask_box(Facts& facts, const std::string& name, MapRequest request, const Coordinates& at, unsigned bytes = 0)
{
    const DeviceArray<std::uint32_t> source(counting<std::uint32_t>(4096, 1));
    request.type = CU_TENSOR_MAP_DATA_TYPE_UINT32;
    request.address = source.data();
    CUtensorMap map{};
    if (const CUresult status = encode(request, map); status != CUDA_SUCCESS) {
        facts.add(name, "encoder: " + std::to_string(static_cast<int>(status)));
        return;
    }
    const unsigned full = product(request.box) * 4;
    facts.add(name, completions(map, static_cast<unsigned>(request.box.size()), at, 0, bytes == 0 ? full : bytes,
                                [&](const Loaded& loaded) { return runs(loaded.words(full / 4 + 1)); }));
}

void ask_boxes(Facts& facts, int)
{
    ask_box(facts, "tensor load, 3d box 4x3x2", {.extents = {16, 8, 4}, .strides = {64, 512}, .box = {4, 3, 2}},
            {{4, 2, 1}});
    ask_box(facts, "tensor load, 3d box 4x3x2 beyond dimension 1",
            {.extents = {16, 8, 4}, .strides = {64, 512}, .box = {4, 3, 2}}, {{4, 7, 1}});
    ask_box(facts, "tensor load, 1d box 8, extent 62", {.extents = {62}, .strides = {}, .box = {8}}, {{60}});
    ask_box(facts, "tensor load, 1d box 8", {.extents = {64}, .strides = {}, .box = {8}}, {{60}});
    ask_box(facts, "tensor load, element strides 1 2",
            {.extents = {16, 8}, .strides = {64}, .box = {4, 4}, .element_strides = {1, 2}}, {{0, 1}}, 32);
    ask_box(facts, "tensor load, element strides 1 2, odd box",
            {.extents = {16, 8}, .strides = {64}, .box = {4, 5}, .element_strides = {1, 2}}, {{0, 1}}, 48);
    ask_box(facts, "tensor load, element strides 1 3, from -2",
            {.extents = {16, 8}, .strides = {64}, .box = {4, 8}, .element_strides = {1, 3}}, {{0, -2}}, 48);
    ask_box(facts, "tensor load, element strides 1 8 beyond the end",
            {.extents = {16, 8}, .strides = {64}, .box = {4, 16}, .element_strides = {1, 8}}, {{0, 2}}, 32);
    ask_box(facts, "tensor load, element strides 2 1",
            {.extents = {16, 8}, .strides = {64}, .box = {8, 2}, .element_strides = {2, 1}}, {{0, 1}});
    ask_box(facts, "tensor load, element strides 4 1 from 8",
            {.extents = {16, 8}, .strides = {64}, .box = {16, 2}, .element_strides = {4, 1}}, {{8, 1}});
    ask_box(facts, "tensor load, element strides 1 2 2",
            {.extents = {16, 8, 4}, .strides = {64, 512}, .box = {4, 4, 4}, .element_strides = {1, 2, 2}}, {{0, 1, 1}},
            64);
    for (const std::uint32_t step : {0U, 9U}) {
        ask_box(facts, "tensor load, element strides 1 " + std::to_string(step),
                {.extents = {16, 8}, .strides = {64}, .box = {4, 4}, .element_strides = {1, step}}, {});
        ask_box(facts, "tensor load, element strides " + std::to_string(step) + " 1",
                {.extents = {16, 8}, .strides = {64}, .box = {4, 4}, .element_strides = {step, 1}}, {});
    }
    ask_box(facts, "tensor load, stride 0", {.extents = {16, 8}, .strides = {0}, .box = {4, 4}}, {{4, 2}});
    ask_box(facts, "tensor load, strides 64 0", {.extents = {16, 8, 4}, .strides = {64, 0}, .box = {4, 2, 2}},
            {{4, 2, 1}});
    ask_box(facts, "tensor load, stride 16 of rows of 64 bytes", {.extents = {16, 8}, .strides = {16}, .box = {8, 4}},
            {{4, 2}});
    ask_box(facts, "tensor load, strides 512 64", {.extents = {16, 4, 8}, .strides = {512, 64}, .box = {4, 2, 2}},
            {{4, 2, 1}});
}

/// Maps that the encoder may refuse.
void ask_encoder(Facts& facts, int)
{
    const DeviceArray<std::uint32_t> source(counting<std::uint32_t>(4096, 1));
    const auto ask = [&](const char* name, MapRequest request, unsigned address = 0) {
        request.type = CU_TENSOR_MAP_DATA_TYPE_UINT32;
        request.address = reinterpret_cast<unsigned char*>(source.data()) + address;
        CUtensorMap map{};
        facts.add(std::string("encoder, ") + name, std::to_string(static_cast<int>(encode(request, map))));
    };
    ask("plain", {.extents = {16, 8}, .strides = {64}, .box = {4, 4}});
    ask("address + 8", {.extents = {16, 8}, .strides = {64}, .box = {4, 4}}, 8);
    CUtensorMap map{};
    facts.add("encoder, no address",
              std::to_string(static_cast<int>(encode(
                  {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32, .extents = {16, 8}, .strides = {64}, .box = {4, 4}}, map))));
    ask("stride 8", {.extents = {16, 8}, .strides = {8}, .box = {4, 4}});
    ask("stride 72", {.extents = {16, 8}, .strides = {72}, .box = {4, 4}});
    ask("stride 2^40 - 16", {.extents = {16, 8}, .strides = {(1ULL << 40) - 16}, .box = {4, 4}});
    ask("stride 2^40", {.extents = {16, 8}, .strides = {1ULL << 40}, .box = {4, 4}});
    ask("extent 0", {.extents = {16, 0}, .strides = {64}, .box = {4, 4}});
    ask("extent 2^32", {.extents = {16, 1ULL << 32}, .strides = {64}, .box = {4, 4}});
    ask("extent 2^32 + 1", {.extents = {16, (1ULL << 32) + 1}, .strides = {64}, .box = {4, 4}});
    ask("box beyond the tensor", {.extents = {4, 2}, .strides = {16}, .box = {16, 16}});
    ask("box of 8 bytes", {.extents = {16, 8}, .strides = {64}, .box = {2, 4}});
    ask("box of 24 bytes", {.extents = {16, 8}, .strides = {64}, .box = {6, 4}});
    ask("box 0", {.extents = {16, 8}, .strides = {64}, .box = {4, 0}});
    ask("box 256", {.extents = {16, 512}, .strides = {64}, .box = {4, 256}});
    ask("box 257", {.extents = {16, 512}, .strides = {64}, .box = {4, 257}});
    ask("box 256 x 227", {.extents = {256, 512}, .strides = {1024}, .box = {256, 227}});
    ask("box 256 x 228", {.extents = {256, 512}, .strides = {1024}, .box = {256, 228}});
    ask("box 256 x 229", {.extents = {256, 512}, .strides = {1024}, .box = {256, 229}});
    ask("box of 48 bytes, swizzle 32B",
        {.extents = {16, 8}, .strides = {64}, .box = {12, 4}, .swizzle = CU_TENSOR_MAP_SWIZZLE_32B});
    ask("1 dimension", {.extents = {64}, .box = {8}});
    ask("1 dimension of 1024 elements, stride 4096", {.extents = {1024}, .strides = {4096}, .box = {64}});
    ask("1 dimension of 1024 elements, stride 4", {.extents = {1024}, .strides = {4}, .box = {64}});
    ask("1 dimension, box of the tensor", {.extents = {64}, .strides = {256}, .box = {64}});
    ask("4 dimensions", {.extents = {16, 2, 2, 2}, .strides = {64, 128, 256}, .box = {4, 1, 1, 1}});
    ask("5 dimensions", {.extents = {16, 2, 2, 2, 2}, .strides = {64, 128, 256, 512}, .box = {4, 1, 1, 1, 1}});
    ask("6 dimensions",
        {.extents = {16, 2, 2, 2, 2, 2}, .strides = {64, 128, 256, 512, 1024}, .box = {4, 1, 1, 1, 1, 1}});
    ask("box of 256 bytes, swizzle 128B_ATOM_32B",
        {.extents = {64, 8}, .strides = {256}, .box = {64, 4}, .swizzle = CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B});
}

// ---- conversions ----

constexpr std::uint32_t words_of_interest[] = {
    0x00000000, 0x80000000, 0x00000001, 0x00001000, 0x00001FFF, 0x007FFFFF, 0x807FFFFF, 0x00800000,
    0x00800001, 0x3F800000, 0x3F800FFF, 0x3F801000, 0x3F801001, 0x3F801FFF, 0x3F802000, 0x3F803000,
    0x3F803001, 0xBF801000, 0xBF803000, 0x7F7FEFFF, 0x7F7FF000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
    0xFF800000, 0x7F800001, 0x7F801000, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF, 0xFFC12345, 0x40490FDB,
};

void ask_conversions(Facts& facts, int)
{
    const std::vector<std::uint32_t> words(std::begin(words_of_interest), std::end(words_of_interest));
    const DeviceArray<std::uint32_t> source(words);
    const auto count = static_cast<unsigned>(words.size());
    for (const ElementType& type : element_types) {
        if (type.type < CU_TENSOR_MAP_DATA_TYPE_FLOAT16) {
            continue;
        }
        const unsigned elements = count * 4 / type.bytes;
        const Loaded loaded = load(encoded({.type = type.type,
                                            .address = source.data(),
                                            .extents = {elements, 1},
                                            .strides = {count * 4},
                                            .box = {elements, 1}}),
                                   2, {}, 0, count * 4);
        std::string text = loaded.error;
        if (text.empty()) {
            const std::vector<std::uint32_t> result = loaded.words(count);
            for (unsigned i = 0; i < count; ++i) {
                if (result[i] != words[i]) {
                    text += (text.empty() ? "" : ", ") + hex(words[i], 8) + " -> " + hex(result[i], 8);
                }
            }
            text = text.empty() ? "unchanged" : text;
        }
        facts.add(std::string("tensor load, conversion of ") + type.name, text);
    }
}

// ---- possible faults, each in a separate process ----

void ask_destination(Facts& facts, int offset)
{
    const DeviceArray<std::uint32_t> source(counting<std::uint32_t>(256, 1));
    const CUtensorMap map = encoded({.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                                     .address = source.data(),
                                     .extents = {8, 8},
                                     .strides = {32},
                                     .box = {8, 4}});
    const Loaded loaded = load(map, 2, {}, static_cast<unsigned>(offset), 128);
    facts.add("tensor load, destination at " + std::to_string(offset),
              !loaded.error.empty() ? loaded.error
                                    : std::string(loaded.completed ? "complete, " : "not complete, ") + "words " +
                                          runs(loaded.words(66)));
}

void ask_swizzled_destination(Facts& facts, int offset)
{
    const DeviceArray<std::uint16_t> source(counting<std::uint16_t>(source_pitch * source_rows / 2, 0));
    const CUtensorMap map = encoded({.type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                     .address = source.data(),
                                     .extents = {source_pitch, source_rows},
                                     .strides = {source_pitch},
                                     .box = {128, 4},
                                     .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
    const Loaded loaded = load(map, 2, {}, static_cast<unsigned>(offset), 512);
    facts.add("tensor load, swizzle 128B, destination at " + std::to_string(offset),
              loaded.error.empty() ? placement(loaded.stage, 0, 16) : loaded.error);
}

void ask_dimensions(Facts& facts, int dimensions)
{
    const DeviceArray<std::uint32_t> source(counting<std::uint32_t>(256, 1));
    const CUtensorMap map = encoded({.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                                     .address = source.data(),
                                     .extents = {8, 8},
                                     .strides = {32},
                                     .box = {8, 4}});
    const Loaded loaded = load(map, static_cast<unsigned>(dimensions), {}, 0, 128);
    facts.add("tensor load, " + std::to_string(dimensions) + "d copy with a map of 2 dimensions",
              loaded.error.empty() ? runs(loaded.words(34)) : loaded.error);
}

void ask_zero_map(Facts& facts, int)
{
    const Loaded loaded = load(CUtensorMap{}, 2, {}, 0, 128);
    facts.add("tensor load, map of zeros", loaded.error.empty() ? runs(loaded.words(34)) : loaded.error);
}

}  // namespace

std::vector<Section> tensor_load_sections()
{
    std::vector<Section> sections = {
        {"tensor load placement", ask_placement},
        {"tensor load fill", ask_fill},
        {"tensor load boxes", ask_boxes},
        {"tensor encoder", ask_encoder},
        {"tensor load conversions", ask_conversions},
    };
    for (int index = 0; index < static_cast<int>(std::size(starts_of_boxes)); ++index) {
        sections.push_back({"tensor load bytes", ask_transactions, index});
    }
    for (const int offset : {16, 32, 64, 8}) {
        sections.push_back({"tensor load destination", ask_destination, offset});
    }
    for (const int offset : {16, 64}) {
        sections.push_back({"tensor load swizzled destination", ask_swizzled_destination, offset});
    }
    for (const int dimensions : {1, 3}) {
        sections.push_back({"tensor load dimensions", ask_dimensions, dimensions});
    }
    sections.push_back({"tensor load zero map", ask_zero_map});
    return sections;
}

}  // namespace tessera::truth
