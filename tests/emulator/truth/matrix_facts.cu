// Facts about ldmatrix, stmatrix and wgmma: which thread holds which element, and which addresses a matrix descriptor
// selects, with base offsets and tiles that do not start at the start of the swizzle's pattern.

#include <cuda_fp16.h>

#include <set>

#include "device_ptx.cuh"
#include "facts.hpp"

namespace tessera::truth {
namespace {

constexpr unsigned warpgroup = 128;

// ---- ldmatrix, stmatrix ----

template <int count, bool transposed>
__global__ void load_matrices(std::uint32_t* out)
{
    __shared__ alignas(128) std::uint16_t stage[256];
    for (unsigned i = threadIdx.x; i < 256; i += 32) {
        stage[i] = static_cast<std::uint16_t>(i);
    }
    __syncwarp();
    const std::uint32_t row = shared_address(stage) + threadIdx.x % (8 * count) * 16;
    std::uint32_t r[4] = {};
#define LOAD(TRANS)                                                                                            \
    if constexpr (count == 1) {                                                                                \
        asm volatile("ldmatrix.sync.aligned.m8n8.x1" TRANS ".shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(row)); \
    } else if constexpr (count == 2) {                                                                         \
        asm volatile("ldmatrix.sync.aligned.m8n8.x2" TRANS ".shared.b16 {%0, %1}, [%2];"                       \
                     : "=r"(r[0]), "=r"(r[1])                                                                  \
                     : "r"(row));                                                                              \
    } else {                                                                                                   \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" TRANS ".shared.b16 {%0, %1, %2, %3}, [%4];"               \
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                                          \
                     : "r"(row));                                                                              \
    }
    if constexpr (transposed) {
        LOAD(".trans")
    } else {
        LOAD("")
    }
#undef LOAD
    for (unsigned i = 0; i < 4; ++i) {
        out[threadIdx.x * 4 + i] = r[i];
    }
}

/// The value of half h of register r of lane t is 64r + 2t + h.
template <int count, bool transposed>
__global__ void store_matrices(std::uint32_t* out)
{
    __shared__ alignas(128) std::uint16_t stage[256];
    for (unsigned i = threadIdx.x; i < 256; i += 32) {
        stage[i] = static_cast<std::uint16_t>(untouched_word);
    }
    __syncwarp();
    const std::uint32_t row = shared_address(stage) + threadIdx.x % (8 * count) * 16;
    std::uint32_t r[4] = {};
    for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t low = 64 * i + 2 * threadIdx.x;
        r[i] = low | (low + 1) << 16;
    }
#define STORE(TRANS)                                                                                            \
    if constexpr (count == 1) {                                                                                 \
        asm volatile("stmatrix.sync.aligned.m8n8.x1" TRANS ".shared.b16 [%0], {%1};" ::"r"(row), "r"(r[0])      \
                     : "memory");                                                                               \
    } else if constexpr (count == 2) {                                                                          \
        asm volatile("stmatrix.sync.aligned.m8n8.x2" TRANS ".shared.b16 [%0], {%1, %2};" ::"r"(row), "r"(r[0]), \
                     "r"(r[1])                                                                                  \
                     : "memory");                                                                               \
    } else {                                                                                                    \
        asm volatile("stmatrix.sync.aligned.m8n8.x4" TRANS ".shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),    \
                     "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])                                                 \
                     : "memory");                                                                               \
    }
    if constexpr (transposed) {
        STORE(".trans")
    } else {
        STORE("")
    }
#undef STORE
    __syncwarp();
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned at = 2 * (threadIdx.x * 4 + i);
        out[threadIdx.x * 4 + i] = stage[at] | std::uint32_t{stage[at + 1]} << 16;
    }
}

/// Halves as two hexadecimal digits each: ldmatrix by lane and register, stmatrix by address.
std::string halves(const std::vector<std::uint32_t>& words, unsigned used_of_4)
{
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i % 4 < used_of_4) {
            for (const std::uint32_t half : {words[i] & 0xFFFF, words[i] >> 16}) {
                text += half == (untouched_word & 0xFFFF) ? "--" : hex(half, 2);
            }
        }
    }
    return text.substr(0, text.find_last_not_of('-') + 1);
}

template <int count, bool transposed>
void ask_matrices(Facts& facts)
{
    const std::string name = ".x" + std::to_string(count) + (transposed ? ".trans" : "");
    const DeviceArray<std::uint32_t> out(std::vector<std::uint32_t>(128, 0));
    load_matrices<count, transposed><<<1, 32>>>(out.data());
    std::string error = outcome();
    facts.add("ldmatrix" + name, error.empty() ? halves(out.values(), count) : error);
    store_matrices<count, transposed><<<1, 32>>>(out.data());
    error = outcome();
    facts.add("stmatrix" + name, error.empty() ? halves(out.values(), 4) : error);
}

void ask_placements(Facts& facts, int)
{
    ask_matrices<1, false>(facts);
    ask_matrices<1, true>(facts);
    ask_matrices<2, false>(facts);
    ask_matrices<2, true>(facts);
    ask_matrices<4, false>(facts);
    ask_matrices<4, true>(facts);
}

// ---- wgmma: fragments ----

/// Fields of a descriptor in bytes, without the start address.
constexpr std::uint64_t descriptor_fields(unsigned leading, unsigned stride, unsigned base_offset, unsigned swizzle)
{
    return std::uint64_t{leading >> 4} << 16 | std::uint64_t{stride >> 4} << 32 | std::uint64_t{base_offset} << 49 |
           std::uint64_t{swizzle} << 62;
}
__device__ std::uint64_t descriptor(std::uint64_t fields, std::uint32_t start)
{
    return fields | (start & 0x3FFFF) >> 4;
}

/// A tile of rows of 32 bytes without swizzle: 8 rows x 16 bytes, then the other 16 bytes of these rows.
constexpr std::uint64_t plain_fields = descriptor_fields(128, 256, 0, 0);
__device__ unsigned plain_offset(unsigned row, unsigned byte)
{
    return row / 8 * 256 + byte / 16 * 128 + row % 8 * 16 + byte % 16;
}
template <typename Element>
__device__ void put_identity(unsigned char* tile, unsigned rows)
{
    constexpr unsigned k = 32 / sizeof(Element);
    for (unsigned i = threadIdx.x; i < rows * k; i += warpgroup) {
        const unsigned row = i / k, column = i % k;
        *reinterpret_cast<Element*>(tile + plain_offset(row, column * sizeof(Element))) =
            Element(row == column ? 1 : 0);
    }
}

#define D8 "{%0, %1, %2, %3, %4, %5, %6, %7}"
#define D8_OUT(d) "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7])
#define WGMMA_BEGIN "{ .reg .pred p; setp.ne.b32 p, 0, 0;\nwgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned."
#define WGMMA_END "\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0; }"

/// D of a 64x16 product in f32 by rows.
__device__ void put_d(float* out, const float (&d)[8])
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (unsigned r = 0; r < 8; ++r) {
        const unsigned row = 16 * warp + lane / 4 + r / 2 % 2 * 8, column = r / 4 * 8 + lane % 4 * 2 + r % 2;
        out[row * 16 + column] = d[r];
    }
}

/// D(m, n) = 16m + n, thread by thread: f32 and f16.
__global__ void note_d(float* singles, std::uint32_t* pairs)
{
    __shared__ alignas(1024) unsigned char a[2048], b[512];
    for (unsigned i = threadIdx.x; i < 64 * 16; i += warpgroup) {
        const unsigned row = i / 16, k = i % 16;
        *reinterpret_cast<__half*>(a + plain_offset(row, 2 * k)) = __half(k == 0 ? row : k == 1 ? 1 : 0);
        if (row < 16) {
            *reinterpret_cast<__half*>(b + plain_offset(row, 2 * k)) = __half(k == 0 ? 16 : k == 1 ? row : 0);
        }
    }
    fence_async();
    __syncthreads();
    const std::uint64_t da = descriptor(plain_fields, shared_address(a)),
                        db = descriptor(plain_fields, shared_address(b));
    float d[8];
    asm volatile(WGMMA_BEGIN "m64n16k16.f32.f16.f16 " D8 ", %8, %9, p, 1, 1, 0, 0;" WGMMA_END
                 : D8_OUT(d)
                 : "l"(da), "l"(db)
                 : "memory");
    std::uint32_t h[4];
    asm volatile(WGMMA_BEGIN "m64n16k16.f16.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;" WGMMA_END
                 : "=r"(h[0]), "=r"(h[1]), "=r"(h[2]), "=r"(h[3])
                 : "l"(da), "l"(db)
                 : "memory");
    for (unsigned r = 0; r < 8; ++r) {
        singles[threadIdx.x * 8 + r] = d[r];
    }
    for (unsigned r = 0; r < 4; ++r) {
        pairs[threadIdx.x * 4 + r] = h[r];
    }
}

/// The value of half h of register r of thread t is 8t + 2r + h; times the identity.
__global__ void note_a_16(float* out)
{
    __shared__ alignas(1024) unsigned char b[512];
    put_identity<__half>(b, 16);
    fence_async();
    __syncthreads();
    std::uint32_t a[4];
    for (unsigned r = 0; r < 4; ++r) {
        const unsigned value = 8 * threadIdx.x + 2 * r;
        a[r] = __half_as_ushort(__half(value)) | std::uint32_t{__half_as_ushort(__half(value + 1))} << 16;
    }
    float d[8];
    asm volatile(WGMMA_BEGIN "m64n16k16.f32.f16.f16 " D8 ", {%8, %9, %10, %11}, %12, p, 1, 1, 0;" WGMMA_END
                 : D8_OUT(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descriptor(plain_fields, shared_address(b)))
                 : "memory");
    put_d(out, d);
}

/// The value of register r of thread t is 4t + r; columns 8 to 15 of the product are 0.
__global__ void note_a_tf32(float* out)
{
    __shared__ alignas(1024) unsigned char b[512];
    put_identity<float>(b, 16);
    fence_async();
    __syncthreads();
    std::uint32_t a[4];
    for (unsigned r = 0; r < 4; ++r) {
        a[r] = __float_as_uint(static_cast<float>(4 * threadIdx.x + r));
    }
    float d[8];
    asm volatile(WGMMA_BEGIN "m64n16k8.f32.tf32.tf32 " D8 ", {%8, %9, %10, %11}, %12, p, 1, 1;" WGMMA_END
                 : D8_OUT(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descriptor(plain_fields, shared_address(b)))
                 : "memory");
    put_d(out, d);
}

/// The value of byte i of register r of thread t is 16t + 4r + i, of which 8 bits from `shift` on are multiplied with
/// columns [first, first + 16) of the identity.
__global__ void note_a_8(float* out, unsigned shift, unsigned first)
{
    __shared__ alignas(1024) unsigned char b[512];
    for (unsigned i = threadIdx.x; i < 16 * 32; i += warpgroup) {
        b[plain_offset(i / 32, i % 32)] = first + i / 32 == i % 32 ? 1 : 0;
    }
    fence_async();
    __syncthreads();
    std::uint32_t a[4];
    for (unsigned r = 0; r < 4; ++r) {
        a[r] = 0;
        for (unsigned i = 0; i < 4; ++i) {
            a[r] |= ((16 * threadIdx.x + 4 * r + i) >> shift & 0xFF) << 8 * i;
        }
    }
    std::uint32_t d[8];
    asm volatile(WGMMA_BEGIN "m64n16k32.s32.u8.u8 " D8 ", {%8, %9, %10, %11}, %12, p;" WGMMA_END
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]), "=r"(d[4]), "=r"(d[5]), "=r"(d[6]), "=r"(d[7])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descriptor(plain_fields, shared_address(b)))
                 : "memory");
    float f[8];
    for (unsigned r = 0; r < 8; ++r) {
        f[r] = static_cast<float>(d[r]);
    }
    put_d(out, f);
}

constexpr unsigned d_elements = 64 * 16;

std::vector<unsigned> integers(const std::vector<float>& values)
{
    std::vector<unsigned> result;
    for (const float value : values) {
        result.push_back(static_cast<unsigned>(value));
    }
    return result;
}

/// Some lines of `width` values, and the checksum of all.
std::string lines(const std::vector<unsigned>& values, unsigned width, std::initializer_list<unsigned> shown)
{
    std::string text;
    for (const unsigned line : shown) {
        text += std::to_string(line) + ": " +
                runs({values.begin() + line * width, values.begin() + (line + 1) * width}) + ", ";
    }
    return text + "all " + checksum(values);
}

void ask_fragments(Facts& facts, int)
{
    const DeviceArray<float> d(std::vector<float>(d_elements, 0));
    const DeviceArray<std::uint32_t> pairs(std::vector<std::uint32_t>(d_elements / 2, 0));
    note_d<<<1, warpgroup>>>(d.data(), pairs.data());
    std::string error = outcome();
    facts.add("wgmma, D in f32 by threads, 16m + n",
              error.empty() ? lines(integers(d.values()), 8, {0, 1, 4, 37, 127}) : error);
    if (error.empty()) {
        std::vector<unsigned> values;
        for (const std::uint32_t pair : pairs.values()) {
            for (const std::uint32_t half : {pair & 0xFFFF, pair >> 16}) {
                values.push_back(
                    static_cast<unsigned>(static_cast<float>(__ushort_as_half(static_cast<unsigned short>(half)))));
            }
        }
        facts.add("wgmma, D in f16 by threads, 16m + n", lines(values, 8, {0, 1, 4, 37, 127}));
    }
    note_a_16<<<1, warpgroup>>>(d.data());
    error = outcome();
    facts.add("wgmma, A of 16 bits in registers by rows, 8t + 2r + half",
              error.empty() ? lines(integers(d.values()), 16, {0, 1, 8, 41, 63}) : error);
    note_a_tf32<<<1, warpgroup>>>(d.data());
    error = outcome();
    facts.add("wgmma, A of tf32 in registers by rows, 4t + r",
              error.empty() ? lines(integers(d.values()), 16, {0, 1, 8, 41, 63}) : error);
    for (const unsigned first : {0U, 16U}) {
        std::vector<unsigned> values(d_elements, 0);
        for (const unsigned shift : {0U, 8U}) {
            note_a_8<<<1, warpgroup>>>(d.data(), shift, first);
            error = outcome();
            const std::vector<unsigned> part = integers(d.values());
            for (unsigned i = 0; i < d_elements; ++i) {
                values[i] += part[i] << shift;
            }
        }
        facts.add("wgmma, A of 8 bits in registers by rows, 16t + 4r + byte, k from " + std::to_string(first),
                  error.empty() ? lines(values, 16, {0, 1, 8, 41, 63}) : error);
    }
}

// ---- wgmma: the addresses that a descriptor selects ----

constexpr unsigned region_bytes = 32768;

/// Multiplies the operand at `start` of a region with the identity. Each f16 of the region is the number of its 16-byte
/// unit, or its place in the unit.
template <bool is_b, bool mn_major>
__global__ void read_through(std::uint64_t fields, unsigned start, bool unit_numbers, float* out)
{
    extern __shared__ __align__(1024) unsigned char region[];
    unsigned char* const identity = region + region_bytes;
    for (unsigned i = threadIdx.x; i < region_bytes / 2; i += warpgroup) {
        reinterpret_cast<__half*>(region)[i] = __half(unit_numbers ? i / 8 : i % 8);
    }
    put_identity<__half>(identity, is_b ? 64 : 16);
    fence_async();
    __syncthreads();
    const std::uint64_t tested = descriptor(fields, shared_address(region) + start);
    const std::uint64_t other = descriptor(plain_fields, shared_address(identity));
    const std::uint64_t a = is_b ? other : tested, b = is_b ? tested : other;
    float d[8];
#define READ(TRANS_A, TRANS_B)                                                                                    \
    asm volatile(WGMMA_BEGIN "m64n16k16.f32.f16.f16 " D8 ", %8, %9, p, 1, 1, " TRANS_A ", " TRANS_B ";" WGMMA_END \
                 : D8_OUT(d)                                                                                      \
                 : "l"(a), "l"(b)                                                                                 \
                 : "memory")
    if constexpr (!mn_major) {
        READ("0", "0");
    } else if constexpr (is_b) {
        READ("0", "1");
    } else {
        READ("1", "0");
    }
#undef READ
    put_d(out, d);
}

struct Tile {
    unsigned swizzle = 0;  ///< bytes
    unsigned leading = 0, stride = 0, start = 0, base_offset = 0;
    bool is_b = false, mn_major = false;
};

/// The 16-byte units of the region that were read, three hexadecimal digits each: by rows and chunks along K, or for an
/// MN-major operand by k and chunks along M or N.
std::string units_read(const Tile& tile)
{
    constexpr unsigned shared_bytes = region_bytes + 2048;
    const unsigned code = tile.swizzle == 128 ? 1 : tile.swizzle == 64 ? 2 : tile.swizzle == 32 ? 3 : 0;
    const std::uint64_t fields = descriptor_fields(tile.leading, tile.stride, tile.base_offset, code);
    auto* const kernel = tile.is_b ? (tile.mn_major ? read_through<true, true> : read_through<true, false>)
                                   : (tile.mn_major ? read_through<false, true> : read_through<false, false>);
    const DeviceArray<float> out(std::vector<float>(d_elements, 0));
    std::vector<unsigned> numbers, places;
    for (const bool unit_numbers : {true, false}) {
        kernel<<<1, warpgroup, shared_bytes>>>(fields, tile.start, unit_numbers, out.data());
        if (const std::string error = outcome(); !error.empty()) {
            return error;
        }
        (unit_numbers ? numbers : places) = integers(out.values());
    }
    // D(m, n) is A(m, k = n) or B(n, k = m)
    const unsigned rows = tile.is_b ? 16 : 64;
    const unsigned outer = tile.mn_major ? 16 : rows, chunks = (tile.mn_major ? rows : 16) / 8;
    std::string text;
    for (unsigned line = 0; line < outer; ++line) {
        for (unsigned chunk = 0; chunk < chunks; ++chunk) {
            bool together = true;
            unsigned first = 0;
            for (unsigned i = 0; i < 8; ++i) {
                const unsigned row = tile.mn_major ? chunk * 8 + i : line, k = tile.mn_major ? line : chunk * 8 + i;
                const unsigned at = tile.is_b ? k * 16 + row : row * 16 + k;
                first = i == 0 ? numbers[at] : first;
                together = together && numbers[at] == first && places[at] == i;
            }
            text += together ? hex(first, 3) : "???";
        }
    }
    return text;
}

void ask_tiles(Facts& facts, int)
{
    std::vector<Tile> tiles;
    // K-major: dense tiles, each start within the pattern, with the base offset that PTX requires and with 0.
    for (const unsigned swizzle : {128U, 64U, 32U}) {
        const unsigned stride = 8 * swizzle;
        for (unsigned row = 0; row < 8; ++row) {
            tiles.push_back({.swizzle = swizzle, .leading = 16, .stride = stride, .start = 128 * row});
            tiles.push_back(
                {.swizzle = swizzle, .leading = 16, .stride = stride, .start = 128 * row, .base_offset = row});
            tiles.push_back({.swizzle = swizzle, .leading = 16, .stride = stride, .base_offset = row});
        }
        for (unsigned column = 16; column < swizzle; column += 16) {
            tiles.push_back({.swizzle = swizzle, .leading = 16, .stride = stride, .start = column});
        }
        tiles.push_back({.swizzle = swizzle, .leading = 16, .stride = stride, .start = swizzle, .base_offset = 0});
        tiles.push_back(
            {.swizzle = swizzle, .leading = 16, .stride = stride, .start = 128 + swizzle / 2, .base_offset = 1});
        tiles.push_back({.swizzle = swizzle, .leading = 0, .stride = stride});
        tiles.push_back({.swizzle = swizzle, .leading = 2048, .stride = stride});
        tiles.push_back({.swizzle = swizzle, .leading = 16, .stride = stride + 128});
        tiles.push_back({.swizzle = swizzle, .leading = 16, .stride = 128});
        tiles.push_back({.swizzle = swizzle, .leading = 16, .stride = 0});
    }
    for (const unsigned base_offset : {0U, 1U, 5U}) {
        tiles.push_back({.leading = 128, .stride = 256, .start = 128, .base_offset = base_offset});
        tiles.push_back({.leading = 1024, .stride = 128, .start = 16, .base_offset = base_offset});
    }
    tiles.push_back({.leading = 0, .stride = 256});
    // MN-major: 64 rows of f16 are 128 bytes
    for (const unsigned swizzle : {128U, 64U, 32U}) {
        for (const unsigned row : {0U, 1U, 2U, 5U}) {
            for (const unsigned base_offset : {0U, row}) {
                if (row != 0 || base_offset == 0) {
                    tiles.push_back({.swizzle = swizzle,
                                     .leading = 4096,
                                     .stride = 8 * swizzle,
                                     .start = 128 * row,
                                     .base_offset = base_offset,
                                     .mn_major = true});
                }
            }
        }
        tiles.push_back(
            {.swizzle = swizzle, .leading = 4096, .stride = 8 * swizzle, .base_offset = 3, .mn_major = true});
    }
    tiles.push_back({.leading = 4096, .stride = 128, .mn_major = true});
    tiles.push_back({.leading = 128, .stride = 4096, .start = 16, .mn_major = true});
    // B
    for (const bool mn_major : {false, true}) {
        for (const unsigned row : {0U, 1U, 3U}) {
            tiles.push_back({.swizzle = 128,
                             .leading = 4096,
                             .stride = 1024,
                             .start = 128 * row,
                             .is_b = true,
                             .mn_major = mn_major});
            tiles.push_back({.swizzle = 128,
                             .leading = 4096,
                             .stride = 1024,
                             .start = 128 * row,
                             .base_offset = row,
                             .is_b = true,
                             .mn_major = mn_major});
        }
    }
    std::set<std::string> known;  // some tiles are in several series
    for (const Tile& tile : tiles) {
        const std::string name = std::string("wgmma, ") + (tile.is_b ? "B" : "A") +
                                 (tile.mn_major ? " MN-major" : " K-major") + ", swizzle " +
                                 std::to_string(tile.swizzle) + ", leading " + std::to_string(tile.leading) +
                                 ", stride " + std::to_string(tile.stride) + ", start " + std::to_string(tile.start) +
                                 ", base offset " + std::to_string(tile.base_offset);
        if (known.insert(name).second) {
            facts.add(name, units_read(tile));
        }
    }
}

// ---- wgmma: which warps wait for each other ----

/// Warps 1 to 3 begin only after they have seen a flag of warp 0, or have polled for it long enough. Warp 0 sets it
/// after so many of its instructions.
constexpr const char* waits[] = {"wgmma.fence", "wgmma.mma_async", "wgmma.commit_group", "wgmma.wait_group"};
constexpr unsigned none = std::size(waits);
__global__ void wait_alone(unsigned which, unsigned* seen)
{
    __shared__ alignas(1024) unsigned char a[2048], b[512];
    __shared__ volatile unsigned flag;
    put_identity<__half>(a, 64);
    put_identity<__half>(b, 16);
    if (threadIdx.x == 0) {
        flag = 0;
    }
    fence_async();
    __syncthreads();
    constexpr int looks = 3000;
    unsigned found = 0;
    if (threadIdx.x >= 32) {
        for (int i = 0; i < looks && found == 0; ++i) {
            found = flag;
            __nanosleep(500);
        }
    }
    __syncwarp();
    const std::uint64_t da = descriptor(plain_fields, shared_address(a)),
                        db = descriptor(plain_fields, shared_address(b));
    const std::uint32_t flag_address = shared_address(const_cast<unsigned*>(&flag));
    const unsigned flag_after = threadIdx.x == 0 ? which : none;
    float d[8];
#define FLAG(PLACE) "{ .reg .pred q; setp.eq.u32 q, %10, " PLACE "; @q st.volatile.shared.u32 [%11], 1; }\n"
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, 0, 0;\n"
        "wgmma.fence.sync.aligned;\n" FLAG(
            "0") "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 " D8
                 ", %8, %9, p, 1, 1, 0, 0;\n" FLAG("1") "wgmma.commit_group.sync.aligned;\n" FLAG(
                     "2") "wgmma.wait_group.sync.aligned 0;\n" FLAG("3") "}"
        : D8_OUT(d)
        : "l"(da), "l"(db), "r"(flag_after), "r"(flag_address)
        : "memory");
#undef FLAG
    if (threadIdx.x == 32) {
        *seen = found;
    }
    if (d[0] < 0) {  // never: D is used
        *seen = 2;
    }
}

void ask_waits(Facts& facts, int which)
{
    const DeviceArray<unsigned> seen(std::vector<unsigned>{0});
    wait_alone<<<1, warpgroup>>>(static_cast<unsigned>(which), seen.data());
    const std::string error = outcome();
    facts.add(std::string("wgmma, one warp goes on past its ") + waits[which] + " before the other warps have begun",
              !error.empty()          ? error
              : seen.values()[0] != 0 ? "yes"
                                      : "no");
}

}  // namespace

std::vector<Section> matrix_sections()
{
    std::vector<Section> sections = {{"ldmatrix and stmatrix", ask_placements},
                                     {"wgmma fragments", ask_fragments},
                                     {"wgmma descriptors", ask_tiles}};
    for (int which = 0; which < static_cast<int>(std::size(waits)); ++which) {
        sections.push_back({"wgmma waits", ask_waits, which});
    }
    return sections;
}

}  // namespace tessera::truth
