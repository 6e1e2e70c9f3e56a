#pragma once

// Tensors and kernels for the tests of tensor copies.

#include <algorithm>
#include <optional>

#include "schedules.hpp"

namespace tessera::emulator::test {

struct Tensor {
    TensorMap map;
    std::vector<std::uint32_t> words;  // its memory
};

inline constexpr std::uint32_t extent[5] = {24, 7, 5, 4, 3};
inline constexpr std::uint32_t boxes[5] = {8, 3, 2, 2, 2};

/// f32 tensor of `rank` dimensions; the element at linear place i holds i + 1. Rows are padded to 32 elements.
inline Tensor make_tensor(PtxRun& run, unsigned rank)
{
    Tensor tensor;
    tensor.map.element = TensorElement::f32;
    tensor.map.rank = rank;
    std::uint64_t stride = 128;
    for (unsigned i = 0; i < rank; ++i) {
        tensor.map.extents[i] = extent[i];
        tensor.map.box[i] = boxes[i];
        if (i + 1 < rank) {
            tensor.map.strides[i] = stride;
        }
        stride *= i == 0 ? 1 : extent[i];
    }
    tensor.words.resize(rank == 1 ? 32 : stride / 4 * 1);
    for (std::size_t i = 0; i < tensor.words.size(); ++i) {
        tensor.words[i] = static_cast<std::uint32_t>(i + 1);
    }
    tensor.map.address = run.buffer(tensor.words);
    return tensor;
}

/// Place in tensor.words of the box's element, or nothing out of bounds.
inline std::optional<std::size_t> place(const Tensor& tensor, const std::array<std::int32_t, 5>& at,
                                        std::uint32_t element)
{
    std::uint64_t bytes = 0;
    bool inside = true;
    for (unsigned i = 0; i < tensor.map.rank; ++i) {
        const std::int64_t coordinate = at[i] + static_cast<std::int64_t>(element % tensor.map.box[i]);
        element /= tensor.map.box[i];
        inside = inside && coordinate >= 0 && coordinate < static_cast<std::int64_t>(tensor.map.extents[i]);
        bytes += static_cast<std::uint64_t>(coordinate) * (i == 0 ? 4 : tensor.map.strides[i - 1]);
    }
    return inside ? std::optional<std::size_t>(bytes / 4) : std::nullopt;
}

inline std::uint32_t elements(const TensorMap& map) { return static_cast<std::uint32_t>(map.box_bytes() / 4); }

inline constexpr const char* coordinates[5] = {"{r20}", "{r20, r21}", "{r20, r21, r22}", "{r20, r21, r22, r23}",
                                               "{r20, r21, r22, r23, r24}"};

/// Loads a box to shared memory and copies its words, in the order of shared memory, to `out`. `shift`: bytes after a
/// 1024-byte boundary.
inline std::string load_kernel(const std::string& instruction, const std::string& bytes)
{
    return module_text("sm_100a", R"(
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 c0, .param .u32 c1, .param .u32 c2, .param .u32 c3,
                  .param .u32 c4, .param .u32 count)
{
    .reg .pred p, q; .reg .b16 h<4>; .reg .b32 r<30>; .reg .b64 d<8>;
    .shared .align 1024 .b8 data[16384];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [out];
    ld.param.u32 r20, [c0];
    ld.param.u32 r21, [c1];
    ld.param.u32 r22, [c2];
    ld.param.u32 r23, [c3];
    ld.param.u32 r24, [c4];
    ld.param.u32 r10, [count];
    mov.b64 d1, map;
    cvta.param.u64 d1, d1;
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mov.u32 r2, bar;
    setp.eq.u32 q, r0, 0;
    @!q bra ready;
    mbarrier.init.shared::cta.b64 [bar], 1;
    prefetch.tensormap [d1];
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], )" +
                                      bytes + R"(;
    )" + instruction + R"(
ready:
    bar.sync 0;
again:
    mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
    @!p bra again;
each:
    setp.ge.u32 p, r0, r10;
    @p ret;
    mad.lo.u32 r4, r0, 4, r1;
    ld.shared.u32 r5, [r4];
    mul.wide.u32 d2, r0, 4;
    add.u64 d2, d0, d2;
    st.global.u32 [d2], r5;
    add.u32 r0, r0, 32;
    bra each;
}
)");
}

inline std::string load(unsigned rank, const std::string& extra = "", const std::string& operands = "")
{
    return "cp.async.bulk.tensor." + std::to_string(rank) + "d.shared::cluster.global.mbarrier::complete_tx::bytes" +
           extra + " [r1], [d1, " + coordinates[rank - 1] + "], [r2]" + operands + ";";
}

inline std::vector<std::uint32_t> launch_load(PtxRun& run, const TensorMap& map, const std::array<std::int32_t, 5>& at,
                                              std::uint32_t count, LaunchResult& result)
{
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(std::max<std::uint32_t>(count, 64)));
    result = run.launch("k", {}, encode(map), out, at[0], at[1], at[2], at[3], at[4], count);
    return run.read<std::uint32_t>(out, count);
}

/// Fills data with 1000 + the place, then executes `store` in thread 0, or in the whole warp.
inline std::string store_kernel(const std::string& store, bool by_warp = false)
{
    const std::string others_leave = by_warp ? "" : "@p ret;";
    return module_text("sm_100a", R"(
.visible .entry k(.param .align 64 .b8 map[128], .param .u32 c0, .param .u32 c1, .param .u32 c2, .param .u32 c3, .param .u32 c4)
{
    .reg .pred p; .reg .b32 r<30>; .reg .b64 d<8>;
    .shared .align 1024 .b8 data[4096];
    ld.param.u32 r20, [c0];
    ld.param.u32 r21, [c1];
    ld.param.u32 r22, [c2];
    ld.param.u32 r23, [c3];
    ld.param.u32 r24, [c4];
    mov.b64 d1, map;
    cvta.param.u64 d1, d1;
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mov.u32 r3, r0;
fill:
    add.u32 r4, r3, 1000;
    mad.lo.u32 r5, r3, 4, r1;
    st.shared.u32 [r5], r4;
    add.u32 r3, r3, 32;
    setp.lt.u32 p, r3, 1024;
    @p bra fill;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    setp.ne.u32 p, r0, 0;
    )" + others_leave + store + R"(
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
)");
}

inline LaunchResult launch_store(PtxRun& run, const TensorMap& map, const std::array<std::int32_t, 5>& at)
{
    return run.launch("k", {}, encode(map), at[0], at[1], at[2], at[3], at[4]);
}

inline std::string store(unsigned rank)
{
    return "cp.async.bulk.tensor." + std::to_string(rank) + "d.global.shared::cta.tile.bulk_group [d1, " +
           coordinates[rank - 1] + "], [r1];";
}

}  // namespace tessera::emulator::test
