// Facts about stores and reductions from shared to global memory.

#include "device_ptx.cuh"
#include "facts.hpp"
#include "tensor_map.hpp"

namespace tessera::truth {
namespace {

constexpr unsigned stage_bytes = 8192;

enum class Operation : int { store, add, min, max, inc, dec, bit_and, bit_or, bit_xor };
constexpr const char* operation_names[] = {"store", "add", "min", "max", "inc", "dec", "and", "or", "xor"};

__device__ void fill_stage(unsigned char* stage, const unsigned char* values)
{
    for (unsigned i = threadIdx.x; i < stage_bytes; i += blockDim.x) {
        stage[i] = values[i];
    }
    fence_async();
    __syncthreads();
}

#define TENSOR_STORE(INSTRUCTION)                                                                                      \
    asm volatile(INSTRUCTION ".2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(at.c[0]), \
                 "r"(at.c[1]), "r"(from)                                                                               \
                 : "memory")
#define TENSOR_REDUCE(OPERATION)                                                \
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta." OPERATION \
                 ".tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),          \
                 "r"(at.c[0]), "r"(at.c[1]), "r"(from)                          \
                 : "memory")

template <Operation operation>
__global__ void store_box(const __grid_constant__ CUtensorMap map, Coordinates at, const unsigned char* values)
{
    extern __shared__ __align__(1024) unsigned char stage[];
    fill_stage(stage, values);
    if (threadIdx.x != 0) {
        return;
    }
    const std::uint32_t from = shared_address(stage);
    if constexpr (operation == Operation::store) {
        TENSOR_STORE("cp.async.bulk.tensor");
    } else if constexpr (operation == Operation::add) {
        TENSOR_REDUCE("add");
    } else if constexpr (operation == Operation::min) {
        TENSOR_REDUCE("min");
    } else if constexpr (operation == Operation::max) {
        TENSOR_REDUCE("max");
    } else if constexpr (operation == Operation::inc) {
        TENSOR_REDUCE("inc");
    } else if constexpr (operation == Operation::dec) {
        TENSOR_REDUCE("dec");
    } else if constexpr (operation == Operation::bit_and) {
        TENSOR_REDUCE("and");
    } else if constexpr (operation == Operation::bit_or) {
        TENSOR_REDUCE("or");
    } else {
        TENSOR_REDUCE("xor");
    }
    commit_and_wait_bulk();
}

/// The target's words afterwards, or the error.
std::string store(Operation operation, MapRequest request, const Coordinates& at, std::vector<std::uint32_t> staged,
                  const std::vector<std::uint32_t>& before)
{
    staged.resize(stage_bytes / 4, untouched_word);
    const DeviceArray<std::uint32_t> source(staged), target(before);
    request.address = target.data();
    const CUtensorMap map = encoded(request);
    constexpr unsigned threads = 128;
    const auto start = [&](auto kernel) {
        kernel<<<1, threads, stage_bytes>>>(map, at, reinterpret_cast<const unsigned char*>(source.data()));
    };
    switch (operation) {
        case Operation::store: start(store_box<Operation::store>); break;
        case Operation::add: start(store_box<Operation::add>); break;
        case Operation::min: start(store_box<Operation::min>); break;
        case Operation::max: start(store_box<Operation::max>); break;
        case Operation::inc: start(store_box<Operation::inc>); break;
        case Operation::dec: start(store_box<Operation::dec>); break;
        case Operation::bit_and: start(store_box<Operation::bit_and>); break;
        case Operation::bit_or: start(store_box<Operation::bit_or>); break;
        case Operation::bit_xor: start(store_box<Operation::bit_xor>); break;
    }
    const std::string error = outcome();
    return error.empty() ? runs(target.values()) : error;
}

std::vector<std::uint32_t> counting(unsigned count)
{
    std::vector<std::uint32_t> words(count);
    for (unsigned i = 0; i < count; ++i) {
        words[i] = i + 1;
    }
    return words;
}

// The tensor is 8x4 words; the target has 8 more words around it, which nothing should write.
constexpr unsigned target_words = 40;
const MapRequest plain{.type = CU_TENSOR_MAP_DATA_TYPE_UINT32, .extents = {8, 4}, .strides = {32}, .box = {8, 2}};

std::string place(const Coordinates& at)
{
    return "{" + std::to_string(at.c[0]) + ", " + std::to_string(at.c[1]) + "}";
}

void ask_stores(Facts& facts, int)
{
    const std::vector<std::uint32_t> empty(target_words, untouched_word);
    for (const Coordinates& at : {Coordinates{{0, 1}}, Coordinates{{4, 1}}, Coordinates{{0, 3}}, Coordinates{{8, 0}},
                                  Coordinates{{0, 4}}, Coordinates{{4, 100}}}) {
        facts.add("tensor store, u32 box 8x2 of 8x4 to " + place(at),
                  store(Operation::store, plain, at, counting(16), empty));
    }
    MapRequest steps = plain;
    steps.box = {8, 4};
    steps.element_strides = {1, 2};
    facts.add("tensor store, element strides 1 2", store(Operation::store, steps, {}, counting(32), empty));
    for (const SwizzleMode& swizzle : swizzle_modes) {
        MapRequest request = plain;
        request.swizzle = swizzle.mode;
        request.extents = {8, 32};
        request.box = {8, 32};
        CUtensorMap map{};
        request.address = reinterpret_cast<void*>(std::uintptr_t{1} << 20);  // only to ask the encoder
        if (const CUresult status = encode(request, map); status != CUDA_SUCCESS) {
            facts.add(std::string("tensor store, swizzle ") + swizzle.name,
                      "encoder: " + std::to_string(static_cast<int>(status)));
            continue;
        }
        facts.add(std::string("tensor store, swizzle ") + swizzle.name,
                  store(Operation::store, request, {}, counting(stage_bytes / 4),
                        std::vector<std::uint32_t>(256, untouched_word)));
    }
    for (const ElementType& type : element_types) {
        if (type.type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16) {
            MapRequest request = plain;
            request.type = type.type;
            request.extents = {32 / type.bytes, 4};
            request.box = {32 / type.bytes, 1};
            facts.add(
                std::string("tensor store, conversion of ") + type.name,
                store(Operation::store, request, {},
                      {0x00000001, 0x807FFFFF, 0x3F801000, 0x3F801001, 0x7F7FFFFF, 0x7F800001, 0xFFC12345, 0xFF800000},
                      std::vector<std::uint32_t>(8, untouched_word)));
        }
    }
}

/// Rows that end inside a 16-byte chunk: is the rest of the chunk written with the box's values?
void ask_last_chunks(Facts& facts, int)
{
    struct Row {
        CUtensorMapDataType type;
        const char* name;
        unsigned bytes;
        std::uint64_t extent;  // of 32 bytes
    };
    for (const Row& row :
         {Row{CU_TENSOR_MAP_DATA_TYPE_FLOAT32, "f32", 4, 7}, Row{CU_TENSOR_MAP_DATA_TYPE_FLOAT32, "f32", 4, 6},
          Row{CU_TENSOR_MAP_DATA_TYPE_FLOAT32, "f32", 4, 5}, Row{CU_TENSOR_MAP_DATA_TYPE_FLOAT32, "f32", 4, 3},
          Row{CU_TENSOR_MAP_DATA_TYPE_UINT32, "u32", 4, 7}, Row{CU_TENSOR_MAP_DATA_TYPE_UINT64, "u64", 8, 3},
          Row{CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, "bf16", 2, 9}, Row{CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, "bf16", 2, 15},
          Row{CU_TENSOR_MAP_DATA_TYPE_UINT8, "u8", 1, 17}, Row{CU_TENSOR_MAP_DATA_TYPE_UINT8, "u8", 1, 31}}) {
        const MapRequest request{
            .type = row.type, .extents = {row.extent, 4}, .strides = {32}, .box = {32 / row.bytes, 2}};
        const std::string name = std::string(row.name) + " box of 32 bytes x 2, extent " + std::to_string(row.extent);
        facts.add("tensor store, " + name, store(Operation::store, request, {{0, 1}}, counting(16),
                                                 std::vector<std::uint32_t>(target_words, untouched_word)));
        if (row.type == CU_TENSOR_MAP_DATA_TYPE_UINT32) {
            facts.add("tensor reduction, add of " + name, store(Operation::add, request, {{0, 1}}, counting(16),
                                                                std::vector<std::uint32_t>(target_words, 1000)));
        }
    }
    // As first seen: rows of 255 in memory for 256, a box of 32.
    facts.add("tensor store, f32 box 32x2, extent 255 of 256",
              store(Operation::store,
                    {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32, .extents = {255, 2}, .strides = {1024}, .box = {32, 2}},
                    {{224, 0}}, counting(64), std::vector<std::uint32_t>(512, untouched_word)));
}

constexpr Coordinates outside_starts[] = {{{-4, 0}}, {{0, -1}}, {{-8, 0}}, {{0, -2}}, {{-4, -1}}, {{1, 0}}, {{3, 3}}};

void ask_outside_store(Facts& facts, int index)
{
    const Coordinates& at = outside_starts[index];
    facts.add(
        "tensor store, u32 box 8x2 of 8x4 to " + place(at),
        store(Operation::store, plain, at, counting(16), std::vector<std::uint32_t>(target_words, untouched_word)));
}

void ask_outside_reduction(Facts& facts, int index)
{
    const Coordinates& at = outside_starts[index];
    facts.add("tensor reduction, add of u32 box 8x2 of 8x4 at " + place(at),
              store(Operation::add, plain, at, counting(16), std::vector<std::uint32_t>(target_words, 1000)));
}

// ---- reductions ----

struct Reduction {
    Operation operation;
    CUtensorMapDataType type;
    const char* name;
};
constexpr Reduction reductions[] = {
    {Operation::add, CU_TENSOR_MAP_DATA_TYPE_UINT32, "u32"},
    {Operation::add, CU_TENSOR_MAP_DATA_TYPE_INT32, "s32"},
    {Operation::add, CU_TENSOR_MAP_DATA_TYPE_UINT64, "u64"},
    {Operation::add, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, "f16"},
    {Operation::add, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, "bf16"},
    {Operation::add, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, "f32"},
    {Operation::add, CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, "f32_ftz"},
    {Operation::min, CU_TENSOR_MAP_DATA_TYPE_UINT32, "u32"},
    {Operation::min, CU_TENSOR_MAP_DATA_TYPE_INT32, "s32"},
    {Operation::min, CU_TENSOR_MAP_DATA_TYPE_UINT64, "u64"},
    {Operation::min, CU_TENSOR_MAP_DATA_TYPE_INT64, "s64"},
    {Operation::min, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, "f16"},
    {Operation::min, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, "bf16"},
    {Operation::max, CU_TENSOR_MAP_DATA_TYPE_UINT32, "u32"},
    {Operation::max, CU_TENSOR_MAP_DATA_TYPE_INT32, "s32"},
    {Operation::max, CU_TENSOR_MAP_DATA_TYPE_UINT64, "u64"},
    {Operation::max, CU_TENSOR_MAP_DATA_TYPE_INT64, "s64"},
    {Operation::max, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, "f16"},
    {Operation::max, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, "bf16"},
    {Operation::inc, CU_TENSOR_MAP_DATA_TYPE_UINT32, "u32"},
    {Operation::dec, CU_TENSOR_MAP_DATA_TYPE_UINT32, "u32"},
    {Operation::bit_and, CU_TENSOR_MAP_DATA_TYPE_UINT32, "u32"},
    {Operation::bit_and, CU_TENSOR_MAP_DATA_TYPE_UINT64, "u64"},
    {Operation::bit_or, CU_TENSOR_MAP_DATA_TYPE_UINT32, "u32"},
    {Operation::bit_or, CU_TENSOR_MAP_DATA_TYPE_UINT64, "u64"},
    {Operation::bit_xor, CU_TENSOR_MAP_DATA_TYPE_UINT32, "u32"},
    {Operation::bit_xor, CU_TENSOR_MAP_DATA_TYPE_UINT64, "u64"},
    // Combinations that PTX does not list.
    {Operation::add, CU_TENSOR_MAP_DATA_TYPE_INT64, "s64"},
    {Operation::add, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, "f64"},
    {Operation::add, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, "tf32"},
    {Operation::add, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, "tf32_ftz"},
    {Operation::bit_xor, CU_TENSOR_MAP_DATA_TYPE_INT64, "s64"},
    {Operation::bit_or, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, "f32"},
    {Operation::max, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, "f64"},
    {Operation::inc, CU_TENSOR_MAP_DATA_TYPE_INT32, "s32"},
    {Operation::min, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, "f32"},
    {Operation::add, CU_TENSOR_MAP_DATA_TYPE_UINT8, "u8"},
    {Operation::bit_and, CU_TENSOR_MAP_DATA_TYPE_INT32, "s32"},
    {Operation::inc, CU_TENSOR_MAP_DATA_TYPE_UINT64, "u64"},
};

/// Pairs of operands: as f32 1 + 2^-23, subnormal sums, NaN, overflow; as two f16 or bf16 the same by halves.
constexpr std::uint32_t reduced[] = {0x3F800001, 0x00000001, 0x00400000, 0x7F7FFFFF, 0x7FC12345, 0x7F800000,
                                     0x80000000, 0x00010001, 0x7BFF0001, 0x7C007E01, 0x80008000, 0x03FF0001,
                                     0xFFFFFFFF, 0x00000005, 0xC0000000, 0x12345678};
constexpr std::uint32_t targets[] = {0x33800000, 0x00000002, 0x00400000, 0x7F7FFFFF, 0x3F800000, 0xFF800000,
                                     0x00000000, 0x00010002, 0x7BFF8001, 0xFC003C00, 0x00008000, 0x0001FFFF,
                                     0x00000001, 0x00000003, 0xBF800000, 0x9ABCDEF0};

std::string words(const std::string& text_or_error, const std::vector<std::uint32_t>& values)
{
    if (!text_or_error.empty()) {
        return text_or_error;
    }
    std::string text;
    for (const std::uint32_t value : values) {
        text += (text.empty() ? "" : " ") + hex(value, 8);
    }
    return text;
}

unsigned bytes_of(CUtensorMapDataType type)
{
    for (const ElementType& known : element_types) {
        if (known.type == type) {
            return known.bytes;
        }
    }
    return 0;
}

void ask_tensor_reduction(Facts& facts, int index)
{
    const Reduction& reduction = reductions[index];
    const unsigned elements = sizeof reduced / bytes_of(reduction.type);
    const MapRequest request{
        .type = reduction.type, .extents = {elements, 1}, .strides = {sizeof reduced}, .box = {elements, 1}};
    facts.add(std::string("tensor reduction, ") + operation_names[static_cast<int>(reduction.operation)] + " of " +
                  reduction.name,
              store(reduction.operation, request, {}, {std::begin(reduced), std::end(reduced)},
                    {std::begin(targets), std::end(targets)}));
}

// clang-format off
#define BULK_REDUCTIONS(DO)                                                                                           \
    DO(0, "add.u32") DO(1, "add.s32") DO(2, "add.u64") DO(3, "add.noftz.f16") DO(4, "add.noftz.bf16") DO(5, "add.f32") \
    DO(6, "add.f64") DO(7, "min.u32") DO(8, "min.s32") DO(9, "min.u64") DO(10, "min.s64") DO(11, "min.f16")            \
    DO(12, "min.bf16") DO(13, "max.u32") DO(14, "max.s32") DO(15, "max.u64") DO(16, "max.s64") DO(17, "max.f16")       \
    DO(18, "max.bf16") DO(19, "inc.u32") DO(20, "dec.u32") DO(21, "and.b32") DO(22, "or.b32") DO(23, "xor.b32")        \
    DO(24, "and.b64") DO(25, "or.b64") DO(26, "xor.b64")
// clang-format on
#define NAME(I, TEXT) TEXT,
constexpr const char* bulk_names[] = {BULK_REDUCTIONS(NAME)};
#undef NAME

template <int which>
__global__ void reduce_bulk(const unsigned char* values, void* target, unsigned bytes)
{
    extern __shared__ __align__(1024) unsigned char stage[];
    fill_stage(stage, values);
    if (threadIdx.x != 0) {
        return;
    }
    const std::uint32_t from = shared_address(stage);
    const auto to = __cvta_generic_to_global(target);
#define CASE(I, TEXT)                                                                                         \
    if constexpr (which == I) {                                                                               \
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." TEXT " [%0], [%1], %2;" ::"l"(to), \
                     "r"(from), "r"(bytes)                                                                    \
                     : "memory");                                                                             \
    }
    BULK_REDUCTIONS(CASE)
#undef CASE
    commit_and_wait_bulk();
}

template <int which>
void ask_bulk_reductions_from(Facts& facts)
{
    if constexpr (which < static_cast<int>(std::size(bulk_names))) {
        std::vector<std::uint32_t> staged(std::begin(reduced), std::end(reduced));
        staged.resize(stage_bytes / 4);
        const DeviceArray<std::uint32_t> source(staged), target({std::begin(targets), std::end(targets)});
        reduce_bulk<which><<<1, 128, stage_bytes>>>(reinterpret_cast<const unsigned char*>(source.data()),
                                                    target.data(), sizeof reduced);
        const std::string error = outcome();
        facts.add(std::string("bulk reduction, ") + bulk_names[which],
                  words(error, error.empty() ? target.values() : std::vector<std::uint32_t>()));
        ask_bulk_reductions_from<which + 1>(facts);
    }
}
void ask_bulk_reductions(Facts& facts, int) { ask_bulk_reductions_from<0>(facts); }

}  // namespace

std::vector<Section> tensor_store_sections()
{
    std::vector<Section> sections = {
        {"tensor stores", ask_stores}, {"last chunks", ask_last_chunks}, {"bulk reductions", ask_bulk_reductions}};
    for (int index = 0; index < static_cast<int>(std::size(outside_starts)); ++index) {
        sections.push_back({"tensor store outside", ask_outside_store, index});
        sections.push_back({"tensor reduction outside", ask_outside_reduction, index});
    }
    for (int index = 0; index < static_cast<int>(std::size(reductions)); ++index) {
        sections.push_back({"tensor reduction", ask_tensor_reduction, index});
    }
    return sections;
}

}  // namespace tessera::truth
