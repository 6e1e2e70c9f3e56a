// Facts about clusters: addresses, who receives a multicast, what arrives at a peer.

#include "device_ptx.cuh"
#include "facts.hpp"
#include "tensor_map.hpp"

namespace tessera::truth {
namespace {

struct Shape {
    unsigned x = 1, y = 1, z = 1;
    [[nodiscard]] unsigned size() const { return x * y * z; }
    [[nodiscard]] std::string name() const
    {
        return std::to_string(x) + "x" + std::to_string(y) + (z == 1 ? "" : "x" + std::to_string(z));
    }
};

template <typename... Parameters, typename... Arguments>
void launch_cluster(void (*kernel)(Parameters...), const Shape& shape, unsigned clusters, unsigned threads,
                    unsigned shared_bytes, Arguments... arguments)
{
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(shape.x * clusters, shape.y, shape.z);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared_bytes;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = shape.x;
    attribute.val.clusterDim.y = shape.y;
    attribute.val.clusterDim.z = shape.z;
    config.attrs = &attribute;
    config.numAttrs = 1;
    // outcome() returns the launch's status again.
    static_cast<void>(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}

// ---- addresses ----

constexpr unsigned address_words = 8;

__global__ void note_addresses(unsigned* out)
{
    __shared__ unsigned fixed[4];
    extern __shared__ unsigned dynamic[];
    if (threadIdx.x == 0) {
        fixed[0] = 1;
        dynamic[0] = 1;
        unsigned owner = 0, size = 0;
        const std::uint32_t mine = shared_address(fixed);
        asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
        const std::uint32_t last = map_address(mine, size - 1);
        asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(owner) : "r"(last));
        // The same by generic addresses: distance of the last CTA's variable from the own one.
        std::uint64_t generic = 0;
        asm volatile("mapa.u64 %0, %1, %2;" : "=l"(generic) : "l"(fixed), "r"(size - 1));
        const std::uint64_t distance = generic - reinterpret_cast<std::uint64_t>(fixed);
        unsigned* const to = out + (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)) * address_words;
        to[0] = cluster_rank();
        to[1] = mine;
        to[2] = shared_address(dynamic);
        to[3] = map_address(mine, 0);
        to[4] = last;
        to[5] = owner;
        to[6] = static_cast<unsigned>(distance);
        to[7] = static_cast<unsigned>(distance >> 32);
    }
    cluster_sync();
}

void ask_addresses(Facts& facts, int)
{
    for (const Shape& shape : {Shape{}, Shape{2}, Shape{1, 2}, Shape{4}, Shape{2, 2}, Shape{2, 1, 2}, Shape{8}}) {
        constexpr unsigned clusters = 2;
        const unsigned ctas = shape.size() * clusters;
        const DeviceArray<unsigned> out(std::vector<unsigned>(ctas * address_words, 0));
        launch_cluster(note_addresses, shape, clusters, 32, 64, out.data());
        std::string text = outcome();
        if (text.empty()) {
            const std::vector<unsigned> words = out.values();
            for (unsigned cta = 0; cta < ctas; ++cta) {
                const unsigned* const w = words.data() + cta * address_words;
                text += (text.empty() ? "" : ", ") + std::to_string(w[0]) + " " + hex(w[1], 7) + " " + hex(w[2], 7) +
                        " " + hex(w[3], 7) + " " + hex(w[4], 7) + " " + std::to_string(w[5]) + " " + hex(w[7], 8) +
                        hex(w[6], 8);
            }
        }
        facts.add(
            "cluster " + shape.name() +
                ", per CTA: rank, static and dynamic shared address, mapa to 0 and to the last, its rank, distance "
                "of generic addresses",
            text);
    }
}

// ---- multicast ----

constexpr unsigned slice_words = 32;
constexpr unsigned slice_bytes = slice_words * 4;

struct Received {
    unsigned completed = 0, first = 0, last = 0;
};

/// CTA `issuer` loads to offset 256 with `mask`; all expect one box. Odd CTAs have their barrier where even CTAs have
/// none.
__global__ void multicast(const __grid_constant__ CUtensorMap map, unsigned issuer, unsigned mask, Received* out)
{
    extern __shared__ __align__(1024) unsigned stage[];
    constexpr unsigned words = 256, target = 64, barrier_word = words - 2;
    for (unsigned i = threadIdx.x; i < barrier_word; i += blockDim.x) {
        stage[i] = untouched_word;
    }
    const std::uint32_t barrier = shared_address(stage + barrier_word);
    if (threadIdx.x == 0) {
        barrier_init(barrier, 1);
        arrive_expect(barrier, slice_bytes);
    }
    fence_async();
    __syncthreads();
    cluster_sync();
    if (threadIdx.x == 0) {
        const Coordinates at;
        if (cluster_rank() == issuer) {
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(stage + target)),
                "l"(&map), "r"(at.c[0]), "r"(at.c[1]), "r"(barrier), "h"(static_cast<unsigned short>(mask))
                : "memory");
        }
        const unsigned completed = wait_bounded(barrier, 0);
        out[cluster_rank()] = {completed, stage[target], stage[target + slice_words - 1]};
    }
    __syncthreads();
    cluster_sync();
}

void ask_multicast_of(Facts& facts, const Shape& shape, unsigned issuer, unsigned mask)
{
    std::vector<std::uint32_t> words(slice_words);
    for (unsigned i = 0; i < slice_words; ++i) {
        words[i] = i + 1;
    }
    const DeviceArray<std::uint32_t> source(words);
    const CUtensorMap map = encoded({.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                                     .address = source.data(),
                                     .extents = {8, 4},
                                     .strides = {32},
                                     .box = {8, 4}});
    const DeviceArray<Received> out(std::vector<Received>(shape.size()));
    launch_cluster(multicast, shape, 1, 32, 1024, map, issuer, mask, out.data());
    std::string text = outcome();
    if (text.empty()) {
        for (const Received& received : out.values()) {
            const bool got = received.first == 1 && received.last == slice_words;
            const bool none = received.first == untouched_word && received.last == untouched_word;
            text += std::string(text.empty() ? "" : ", ") +
                    (got    ? "data"
                     : none ? "nothing"
                            : "a part") +
                    (received.completed != 0 ? " and phase" : "");
        }
    }
    facts.add("multicast, cluster " + shape.name() + ", CTA " + std::to_string(issuer) + " to mask " + hex(mask, 4),
              text);
}

void ask_multicast(Facts& facts, int)
{
    for (const unsigned issuer : {0U, 1U}) {
        for (const unsigned mask : {1U, 2U, 3U}) {
            ask_multicast_of(facts, {2}, issuer, mask);
        }
    }
    for (const unsigned issuer : {0U, 1U, 3U}) {
        for (const unsigned mask : {0x1U, 0x2U, 0x3U, 0x5U, 0x8U, 0xAU, 0xFU}) {
            ask_multicast_of(facts, {4}, issuer, mask);
        }
    }
    for (const unsigned mask : {0x3U, 0x5U, 0xCU}) {
        ask_multicast_of(facts, {2, 2}, 2, mask);
    }
}
void ask_mask_beyond(Facts& facts, int mask) { ask_multicast_of(facts, {2}, 0, static_cast<unsigned>(mask)); }

// ---- operations on a peer ----

enum class Remote : int {
    tensor_load,  ///< of a box to the peer's memory and barrier
    bulk_copy,    ///< own shared memory to the peer's
    bulk_add,     ///< the same, added
    store_4,      ///< st.async of 4, 8 and 16 bytes
    store_8,
    store_16,
    add_u32,  ///< red.async
    add_s32,
    add_u64,
    min_u32,
    min_s32,
    max_u32,
    max_s32,
    inc_u32,
    dec_u32,
    and_b32,
    or_b32,
    xor_b32,
    arrive,         ///< one arrival, no bytes
    arrive_2,       ///< two at once
    arrive_expect,  ///< expects the bytes remotely
    complete,       ///< complete_tx, no data
    count
};
constexpr const char* remote_names[] = {"tensor load",         "bulk copy",         "bulk add.u32",
                                        "st.async.b32",        "st.async.b64",      "st.async.v4.b32",
                                        "red.async.add.u32",   "red.async.add.s32", "red.async.add.u64",
                                        "red.async.min.u32",   "red.async.min.s32", "red.async.max.u32",
                                        "red.async.max.s32",   "red.async.inc.u32", "red.async.dec.u32",
                                        "red.async.and.b32",   "red.async.or.b32",  "red.async.xor.b32",
                                        "mbarrier.arrive",     "mbarrier.arrive 2", "mbarrier.arrive.expect_tx",
                                        "mbarrier.complete_tx"};
static_assert(std::size(remote_names) == static_cast<int>(Remote::count));

#define RED(CASE, TYPE)                                                                             \
    case Remote::CASE:                                                                              \
        asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." TYPE \
                     " [%0], %1, [%2];" ::"r"(to),                                                  \
                     "r"(value), "r"(barrier)                                                       \
                     : "memory");                                                                   \
        break

/// CTA 0 acts on CTA 1, whose barrier counts `arrivals` and, unless 0, expects `bytes`.
__global__ void act_on_peer(const __grid_constant__ CUtensorMap map, Remote what, unsigned value, unsigned before,
                            unsigned arrivals, unsigned bytes, unsigned* out)
{
    extern __shared__ __align__(1024) unsigned stage[];
    constexpr unsigned words = 128, target = 32, barrier_word = words - 2;
    const unsigned rank = cluster_rank();
    for (unsigned i = threadIdx.x; i < barrier_word; i += blockDim.x) {
        stage[i] = rank == 0 ? i + 1 : before;
    }
    const std::uint32_t own_barrier = shared_address(stage + barrier_word);
    if (threadIdx.x == 0) {
        barrier_init(own_barrier, arrivals);
        if (bytes != 0) {
            arrive_expect(own_barrier, bytes);
        }
    }
    fence_async();
    __syncthreads();
    cluster_sync();
    if (rank == 0 && threadIdx.x == 0) {
        const std::uint32_t to = map_address(shared_address(stage + target), 1);
        const std::uint32_t barrier = map_address(own_barrier, 1);
        const std::uint32_t from = shared_address(stage);
        switch (what) {
            case Remote::tensor_load: tensor_load<2>(to, &map, {}, barrier); break;
            case Remote::bulk_copy:
                asm volatile(
                    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 64, [%2];" ::
                        "r"(to),
                    "r"(from), "r"(barrier)
                    : "memory");
                break;
            case Remote::bulk_add:
                asm volatile(
                    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%0], [%1], "
                    "64, "
                    "[%2];" ::"r"(to),
                    "r"(from), "r"(barrier)
                    : "memory");
                break;
            case Remote::store_4:
                asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to),
                             "r"(value), "r"(barrier)
                             : "memory");
                break;
            case Remote::store_8:
                asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to),
                             "l"(std::uint64_t{value} << 32 | value), "r"(barrier)
                             : "memory");
                break;
            case Remote::store_16:
                asm volatile(
                    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::
                        "r"(to),
                    "r"(value), "r"(value + 1), "r"(value + 2), "r"(value + 3), "r"(barrier)
                    : "memory");
                break;
            case Remote::add_u64:
                asm volatile(
                    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%0], %1, [%2];" ::
                        "r"(to),
                    "l"(std::uint64_t{value} << 32 | value), "r"(barrier)
                    : "memory");
                break;
                RED(add_u32, "add.u32");
                RED(add_s32, "add.s32");
                RED(min_u32, "min.u32");
                RED(min_s32, "min.s32");
                RED(max_u32, "max.u32");
                RED(max_s32, "max.s32");
                RED(inc_u32, "inc.u32");
                RED(dec_u32, "dec.u32");
                RED(and_b32, "and.b32");
                RED(or_b32, "or.b32");
                RED(xor_b32, "xor.b32");
            case Remote::arrive:
                asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
                break;
            case Remote::arrive_2:
                asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], 2;" ::"r"(barrier)
                             : "memory");
                break;
            case Remote::arrive_expect:
                asm volatile(
                    "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(barrier),
                    "r"(value)
                    : "memory");
                break;
            case Remote::complete:
                asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;" ::"r"(barrier),
                             "r"(value)
                             : "memory");
                break;
            case Remote::count: break;
        }
    }
    if (threadIdx.x == 0) {
        // The actor's own barrier must not change.
        out[rank * 8] = rank == 0 ? test_parity(own_barrier, 0) : wait_bounded(own_barrier, 0);
        for (unsigned i = 0; i < 5; ++i) {
            out[rank * 8 + 1 + i] = stage[target + i];
        }
    }
    __syncthreads();
    cluster_sync();
}

std::string act(Remote what, unsigned value, unsigned before, unsigned arrivals, unsigned bytes)
{
    const DeviceArray<std::uint32_t> source(std::vector<std::uint32_t>(16, 77));
    const CUtensorMap map = encoded({.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                                     .address = source.data(),
                                     .extents = {4, 4},
                                     .strides = {16},
                                     .box = {4, 4}});
    const DeviceArray<unsigned> out(std::vector<unsigned>(16, 0));
    launch_cluster(act_on_peer, {2}, 1, 32, 512, map, what, value, before, arrivals, bytes, out.data());
    if (const std::string error = outcome(); !error.empty()) {
        return error;
    }
    std::string text;
    const std::vector<unsigned> words = out.values();
    for (unsigned rank = 0; rank < 2; ++rank) {
        text += std::string(rank == 0 ? "" : ", CTA 1") + (rank == 0 ? "CTA 0" : "") +
                (words[rank * 8] != 0 ? " phase" : " no phase");
        text += " " + runs({words.begin() + rank * 8 + 1, words.begin() + rank * 8 + 6});
    }
    return text;
}

void ask_remote(Facts& facts, int)
{
    struct Case {
        Remote what;
        unsigned value, before, arrivals, bytes;
    };
    std::vector<Case> cases = {
        {Remote::bulk_copy, 0, 1000, 1, 64},     {Remote::bulk_copy, 0, 1000, 1, 80},
        {Remote::bulk_add, 0, 1000, 1, 64},      {Remote::store_4, 5, 1000, 1, 4},
        {Remote::store_4, 5, 1000, 1, 8},        {Remote::store_8, 5, 1000, 1, 8},
        {Remote::store_16, 5, 1000, 1, 16},      {Remote::add_u64, 0x80000005, 0x80000001, 1, 8},
        {Remote::arrive, 0, 1000, 1, 0},         {Remote::arrive, 0, 1000, 2, 0},
        {Remote::arrive_2, 0, 1000, 2, 0},       {Remote::arrive_expect, 0, 1000, 1, 0},
        {Remote::arrive_expect, 16, 1000, 1, 0}, {Remote::complete, 16, 1000, 1, 16},
        {Remote::complete, 16, 1000, 1, 32},
    };
    for (int what = static_cast<int>(Remote::add_u32); what <= static_cast<int>(Remote::xor_b32); ++what) {
        if (static_cast<Remote>(what) != Remote::add_u64) {
            cases.push_back({static_cast<Remote>(what), 5, 0xFFFFFFFE, 1, 4});
            cases.push_back({static_cast<Remote>(what), 5, 3, 1, 4});
        }
    }
    for (const Case& one : cases) {
        facts.add(std::string("at the peer, ") + remote_names[static_cast<int>(one.what)] + " of " +
                      std::to_string(one.value) + " to " + hex(one.before, 8) + ", barrier of " +
                      std::to_string(one.arrivals) + " expecting " + std::to_string(one.bytes),
                  act(one.what, one.value, one.before, one.arrivals, one.bytes));
    }
}

void ask_remote_load(Facts& facts, int)
{
    facts.add("at the peer, tensor load of 64 bytes to its memory and barrier",
              act(Remote::tensor_load, 0, 1000, 1, 64));
}

}  // namespace

std::vector<Section> cluster_sections()
{
    return {{"cluster addresses", ask_addresses},        {"multicast", ask_multicast},
            {"multicast beyond", ask_mask_beyond, 7},    {"multicast beyond", ask_mask_beyond, 4},
            {"multicast beyond", ask_mask_beyond, 0},    {"at the peer", ask_remote},
            {"tensor load to the peer", ask_remote_load}};
}

}  // namespace tessera::truth
