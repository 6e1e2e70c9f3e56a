// What operations do, as data: one or more forms of each opcode against a description written by hand.

#include <doctest/doctest.h>

#include <set>

#include "program/decoder.hpp"
#include "program/program.hpp"
#include "run_ptx.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

// ---- description ----

std::string name_of(Space space)
{
    constexpr std::array names{"generic", "global", "const", "shared", "local", "param", "tensor"};
    return names.at(static_cast<std::size_t>(space));
}

std::string name_of(MemoryOrder order)
{
    constexpr std::array semantics{"", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc"};
    constexpr std::array scopes{"", ".cta", ".cluster", ".gpu", ".sys"};
    return std::string(semantics.at(static_cast<std::size_t>(order.semantics))) +
           scopes.at(static_cast<std::size_t>(order.scope));
}

std::string describe(const MemoryEffect& memory)
{
    constexpr std::array directions{"read", "write", "update"};
    std::string text = memory.later ? "later " : "";
    text += memory.atomic ? "atomic " : "";
    text += std::string(directions.at(static_cast<std::size_t>(memory.direction))) + " " + name_of(memory.space);
    text += memory.bytes != 0 ? " " + std::to_string(memory.bytes) : "";
    text += memory.proxy == Proxy::async ? " async" : "";
    return text + (memory.order.strong() ? " " + name_of(memory.order) : "") + "; ";
}

std::string describe(const SyncEffect& sync)
{
    constexpr std::array objects{"",         "lanes",           "named barrier", "cluster barrier",
                                 "mbarrier", "memory",          "async proxy",   "other proxy",
                                 "groups",   "wgmma registers", "tensor memory", "register pool",
                                 "grids"};
    if (sync.object == SyncObject::none) {
        return {};
    }
    std::string text = sync.later ? "later " : "";
    text += sync.arrives ? "arrive " : "";
    text += sync.waits ? "wait " : "";
    text += sync.fences ? "fence " : "";
    text += sync.commits ? "commit " : "";
    text += sync.manages ? "manage " : "";
    text += objects.at(static_cast<std::size_t>(sync.object));
    return text + (sync.order.strong() ? " " + name_of(sync.order) : "") + "; ";
}

/// "2 addresses, 1 read, 3 written"; constants do not count.
std::string describe(const OperandRoles& roles)
{
    const auto registers = [](std::span<const OperandRole> some) {
        std::string count = std::to_string(
            std::ranges::count_if(some, [](const OperandRole& role) { return role.row < in_constants; }));
        return std::ranges::any_of(some, &OperandRole::later) ? count + " later" : count;
    };
    return registers(roles.addresses) + "a " + registers(roles.reads) + "r " + registers(roles.writes) + "w";
}

std::string describe(const Effects& effects, const OperandRoles& roles)
{
    constexpr std::array flows{
        "",           "passed on; ", "moved; ",    "selected; ", "conjunction; ", "disjunction; ",
        "inserted; ", "shuffled; ",  "in place; ", "stored; "};
    constexpr std::array controls{"", "branch; ", "call; ", "leave; ", "end; "};
    constexpr std::array lanes{"", "aligned; ", "named; "};
    constexpr std::array units{"", "load/store; ", "tma; ", "tensor; ", "launch control; "};
    std::string text = flows.at(static_cast<std::size_t>(effects.flow));
    text += controls.at(static_cast<std::size_t>(effects.control));
    text += lanes.at(static_cast<std::size_t>(effects.lanes));
    text += units.at(static_cast<std::size_t>(effects.unit));
    for (const MemoryEffect& memory : effects.memory_effects()) {
        text += describe(memory);
    }
    text += describe(effects.sync);
    text += effects.may_wait ? "may wait; " : "";
    text += effects.depends_on_clusters ? "depends on clusters; " : effects.meets_clusters ? "meets clusters; " : "";
    return text + describe(roles);
}

/// What `look` says of the first operation of a kernel with this instruction, or why the kernel does not load.
template <typename Look>
std::string first_operation(const std::string& instruction, const std::string& target, const std::string& device,
                            Look&& look)
{
    PtxRun run(module_text(target,
                           ".visible .func (.param .b32 v) f(.param .b32 a) { st.param.b32 [v], 1; ret; }\n"
                           ".visible .entry k()\n{\n .reg .b16 %rs<8>; .reg .b32 %r<40>; .reg .b64 %rd<8>; .reg .f32 "
                           "%f<8>; .reg .f64 %fd<8>;\n .reg .pred %p<8>; .reg .b128 %rq<4>; .reg .b8 %rb<4>;\n"
                           " .param .b32 q; .param .b32 s; .shared .b32 sh[4]; .local .b32 lo[4];\n"
                           " T: .branchtargets L;\n" +
                               instruction + "\nL: ret;\n}\n"),
               device);
    const std::string& error = run.module().find_kernel("k")->load_error;
    if (!error.empty()) {
        return error;
    }
    const Program& program = run.module().program();
    const FunctionCode& code = program.functions[program.kernel_functions.find("k")->second];
    return look(program, code.entry);
}

std::string effects_of(const std::string& instruction, const std::string& target, const std::string& device)
{
    return first_operation(instruction, target, device, [](const Program& program, std::uint32_t operation) {
        return describe(program.effects.of(operation), program.effects.roles(operation));
    });
}

struct Expectation {
    const char *instruction, *effects;
};

constexpr Expectation blackwell[] = {
    // Registers only
    {"add.u32 %r0, %r1, %r2;", "passed on; 0a 2r 1w"},
    {"add.u32 %r0, %r1, 5;", "passed on; 0a 1r 1w"},
    {"mad.lo.s32 %r0, %r1, %r2, %r0;", "passed on; 0a 3r 1w"},
    {"setp.lt.and.f32 %p0|%p1, %f0, %f1, %p2;", "passed on; 0a 3r 2w"},
    {"mov.u32 %r0, %r1;", "moved; 0a 1r 1w"},
    {"mov.u32 %r0, %tid.x;", "moved; 0a 0r 1w"},
    {"mov.b64 {%r0, %r1}, %rd0;", "moved; 0a 1r 2w"},
    {"mov.v2.u32 {%r0, %r1}, {%r2, %r3};", "in place; 0a 2r 2w"},
    {"bfi.b32 %r0, %r1, %r2, 8, 4;", "inserted; 0a 2r 1w"},
    {"selp.b32 %r0, %r1, %r2, %p0;", "selected; 0a 3r 1w"},
    {"and.b32 %r0, %r1, %r2;", "conjunction; 0a 2r 1w"},
    {"and.pred %p0, %p1, %p2;", "conjunction; 0a 2r 1w"},
    {"or.b32 %r0, %r1, %r2;", "disjunction; 0a 2r 1w"},
    {"xor.b32 %r0, %r1, %r2;", "passed on; 0a 2r 1w"},
    {"cvta.to.global.u64 %rd0, %rd1;", "0a 1r 1w"},
    {"isspacep.shared %p0, %rd0;", "0a 1r 1w"},
    {"mapa.shared::cluster.u32 %r0, %r1, %r2;", "0a 2r 1w"},
    {"getctarank.shared::cluster.u32 %r0, %r1;", "0a 1r 1w"},
    {"createpolicy.fractional.L2::evict_last.b64 %rd0, 1.0;", "0a 0r 1w"},
    // Lanes of a warp
    {"shfl.sync.bfly.b32 %r0|%p0, %r1, %r2, 31, %r3;", "shuffled; named; may wait; 0a 3r 2w"},
    {"vote.sync.ballot.b32 %r0, %p0, %r1;", "named; may wait; 0a 2r 1w"},
    {"match.all.sync.b32 %r0|%p0, %r1, %r2;", "named; may wait; 0a 2r 2w"},
    {"redux.sync.add.u32 %r0, %r1, %r2;", "named; may wait; 0a 2r 1w"},
    {"elect.sync %r0|%p0, %r1;", "named; may wait; 0a 1r 2w"},
    {"activemask.b32 %r0;", "0a 0r 1w"},
    // Control
    {"bra L;", "branch; 0a 0r 0w"},
    {"@%p0 bra L;", "branch; 0a 0r 0w"},
    {"brx.idx %r0, T;", "branch; 0a 1r 0w"},
    {"call (q), f, (s);", "call; 0a 0r 0w"},
    {"ret;", "leave; 0a 0r 0w"},
    {"exit;", "end; 0a 0r 0w"},
    {"trap;", "end; 0a 0r 0w"},
    {"brkpt;", "end; 0a 0r 0w"},
    {"nanosleep.u32 %r0;", "0a 1r 0w"},
    {"pmevent 3;", "0a 0r 0w"},
    // Memory
    {"ld.global.u32 %r0, [%rd0+4];", "read global 4; 1a 0r 1w"},
    {"ld.u8 %rs0, [%rd0];", "read generic 1; 1a 0r 1w"},
    {"ldu.global.u32 %r0, [%rd0];", "read global 4; 1a 0r 1w"},
    {"ld.global.v4.f32 {%f0,%f1,%f2,%f3}, [%rd0];", "read global 16; 1a 0r 4w"},
    {"ld.acquire.gpu.global.u32 %r0, [%rd0];", "read global 4 acquire.gpu; depends on clusters; 1a 0r 1w"},
    {"ld.relaxed.cta.shared.u32 %r0, [%r1];", "read shared 4 relaxed.cta; 1a 0r 1w"},
    {"ld.acquire.cluster.shared::cluster.u32 %r0, [%r1];", "read shared 4 acquire.cluster; 1a 0r 1w"},
    {"ld.volatile.global.u32 %r0, [%rd0];", "read global 4 volatile.sys; depends on clusters; 1a 0r 1w"},
    {"st.global.u32 [%rd0], %r0;", "stored; write global 4; 1a 1r 0w"},
    {"st.shared.v2.u32 [%r0], {%r1, %r2};", "stored; write shared 8; 1a 2r 0w"},
    {"st.release.cluster.shared::cluster.u32 [%r0], %r1;", "stored; write shared 4 release.cluster; 1a 1r 0w"},
    {"st.local.u32 [lo+4], %r0;", "stored; write local 4; 0a 1r 0w"},
    {"atom.global.add.u32 %r0, [%rd0], %r1;", "atomic update global 4 relaxed.gpu; depends on clusters; 1a 1r 1w"},
    {"atom.acq_rel.cta.shared.cas.b32 %r0, [%r1], %r2, %r3;", "atomic update shared 4 acq_rel.cta; 1a 2r 1w"},
    {"red.release.sys.global.add.u32 [%rd0], %r0;", "atomic update global 4 release.sys; meets clusters; 1a 1r 0w"},
    {"st.release.gpu.global.u32 [%rd0], %r0;", "stored; write global 4 release.gpu; meets clusters; 1a 1r 0w"},
    {"red.global.add.f32 [%rd0], %f0;", "atomic update global 4 relaxed.gpu; depends on clusters; 1a 1r 0w"},
    {"discard.global.L2 [%rd0], 128;", "write global 128; 1a 0r 0w"},
    {"prefetch.global.L2 [%rd0];", "1a 0r 0w"},
    {"prefetchu.L1 [%rd0];", "1a 0r 0w"},
    {"applypriority.global.L2::evict_normal [%rd0], 128;", "1a 0r 0w"},
    {"st.bulk.weak.shared::cta [%r0], %rd0, 0;", "write shared; 1a 1r 0w"},
    {"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r0], {%r1, %r2}, [%r3];",
     "load/store; later write shared 8; later arrive mbarrier release.cluster; 2a 2r 0w"},
    {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r0], %r1, [%r2];",
     "load/store; later atomic update shared 4 relaxed.cluster; later arrive mbarrier release.cluster; 2a 1r 0w"},
    {"st.async.release.gpu.global.b32 [%rd0], %r1;", "load/store; later write global 4 release.gpu; 1a 1r 0w"},
    // Barriers
    {"bar.sync 0;", "aligned; arrive wait named barrier acq_rel.cta; may wait; 0a 0r 0w"},
    {"bar.arrive 1, 64;", "aligned; arrive named barrier release.cta; may wait; 0a 0r 0w"},
    {"barrier.sync %r0, %r1;", "arrive wait named barrier acq_rel.cta; may wait; 0a 2r 0w"},
    {"bar.red.popc.u32 %r0, 0, %p0;", "aligned; arrive wait named barrier acq_rel.cta; may wait; 0a 1r 1w"},
    {"bar.warp.sync %r0;", "named; arrive wait lanes acq_rel.cta; may wait; 0a 1r 0w"},
    {"barrier.cluster.arrive.relaxed.aligned;", "aligned; arrive cluster barrier relaxed.cluster; may wait; 0a 0r 0w"},
    {"barrier.cluster.arrive;", "arrive cluster barrier release.cluster; 0a 0r 0w"},
    {"barrier.cluster.wait;", "wait cluster barrier acquire.cluster; may wait; 0a 0r 0w"},
    {"mbarrier.init.shared::cta.b64 [%r0], 1;", "manage mbarrier; 1a 0r 0w"},
    {"mbarrier.inval.shared::cta.b64 [%r0];", "manage mbarrier; 1a 0r 0w"},
    {"mbarrier.arrive.shared::cta.b64 %rd0, [%r0];", "arrive mbarrier release.cta; 1a 0r 1w"},
    {"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r0];", "arrive mbarrier release.cluster; 1a 0r 0w"},
    {"mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 %rd0, [%r0], %r1;",
     "arrive manage mbarrier relaxed.cta; 1a 1r 1w"},
    {"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], %r1;", "manage mbarrier relaxed.cta; 1a 1r 0w"},
    {"mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], %r1;", "wait mbarrier acquire.cta; 1a 1r 1w"},
    {"mbarrier.try_wait.acquire.cluster.shared::cta.b64 %p0, [%r0], %rd1;",
     "wait mbarrier acquire.cluster; may wait; 1a 1r 1w"},
    {"mbarrier.pending_count.b64 %r0, %rd0;", "0a 1r 1w"},
    {"fence.acq_rel.gpu;", "fence memory acq_rel.gpu; 0a 0r 0w"},
    {"fence.sc.cta;", "fence memory sc.cta; 0a 0r 0w"},
    {"fence.release.cluster;", "fence memory release.cluster; 0a 0r 0w"},
    {"fence.mbarrier_init.release.cluster;", "fence memory release.cluster; 0a 0r 0w"},
    {"fence.proxy.async;", "fence async proxy; 0a 0r 0w"},
    {"fence.proxy.alias;", "fence other proxy; 0a 0r 0w"},
    {"fence.proxy.tensormap::generic.acquire.gpu [%rd0], 128;", "fence other proxy acquire.gpu; 1a 0r 0w"},
    {"membar.gl;", "fence memory sc.gpu; 0a 0r 0w"},
    // Asynchronous copies
    {"cp.async.ca.shared.global [%r0], [%rd0], 8;", "load/store; later read global 8; later write shared 8; 2a 0r 0w"},
    {"cp.async.cg.shared.global.L2::cache_hint [%r0], [%rd0], 16, %r1, %rd1;",
     "load/store; later read global 16; later write shared 16; 2a 2r 0w"},
    {"cp.async.commit_group;", "commit groups; 0a 0r 0w"},
    {"cp.async.wait_group 1;", "wait groups; may wait; 0a 0r 0w"},
    {"cp.async.wait_all;", "wait groups; may wait; 0a 0r 0w"},
    {"cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r0];", "load/store; later arrive mbarrier; 1a 0r 0w"},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r0], [%rd0], %r1, [%r2], "
     "%rd1;",
     "tma; later read global async; later write shared async; later arrive mbarrier release.cluster; 3a 2r 0w"},
    {"cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r0], %r1;",
     "tma; later read shared async; later write global async; 2a 1r 0w"},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [%r0], %r1;",
     "tma; later read shared async; later update global async; depends on clusters; 2a 1r 0w"},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
     "[%r0], [%rd0, {%r1, %r2}], [%r3], %rs0;",
     "tma; later read global async; later write shared async; later arrive mbarrier release.cluster; 3a 3r 0w"},
    {"cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd0, {%r0}], [%r1];",
     "tma; later read shared async; later write global async; 2a 1r 0w"},
    {"cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd0, {%r0}], [%r1];",
     "tma; later read shared async; later update global async; depends on clusters; 2a 1r 0w"},
    {"cp.async.bulk.prefetch.L2.global [%rd0], %r0;", "1a 1r 0w"},
    {"cp.async.bulk.prefetch.tensor.1d.L2.global [%rd0, {%r0}];", "1a 1r 0w"},
    {"cp.async.bulk.commit_group;", "commit groups; 0a 0r 0w"},
    {"cp.async.bulk.wait_group.read 0;", "wait groups; may wait; 0a 0r 0w"},
    {"tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd0], %rd1;", "update shared 128; 1a 1r 0w"},
    {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd0], [%rd1], 128;",
     "aligned; read shared 128; write global 128; fence other proxy release.gpu; may wait; 2a 0r 0w"},
    {"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r0], [%r1];",
     "launch control; later write shared 16 async; later arrive mbarrier release.cluster; 2a 0r 0w"},
    {"clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p0, %rq0;", "0a 1r 1w"},
    {"griddepcontrol.wait;", "wait grids; 0a 0r 0w"},
    {"griddepcontrol.launch_dependents;", "arrive grids; 0a 0r 0w"},
    // Matrices
    {"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r1}, [%r2];", "aligned; read shared; may wait; 1a 0r 2w"},
    {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r0], {%r1};", "aligned; write shared; may wait; 1a 1r 0w"},
    {"movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;", "aligned; may wait; 0a 1r 1w"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
     "{%f0,%f1,%f2,%f3};",
     "aligned; may wait; 0a 10r 4w"},
    {"wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%r0], {%r1,%r2,%r3,%r4};",
     "aligned; write shared; may wait; 1a 4r 0w"},
    {"setmaxnreg.dec.sync.aligned.u32 40;", "aligned; arrive manage register pool; may wait; 0a 0r 0w"},
    {"setmaxnreg.inc.sync.aligned.u32 40;", "aligned; wait manage register pool; may wait; 0a 0r 0w"},
    // Tensor memory
    {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 32;",
     "aligned; write shared 4; wait manage tensor memory; may wait; 1a 0r 0w"},
    {"tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32;",
     "aligned; arrive wait manage tensor memory; may wait; 0a 1r 0w"},
    {"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
     "aligned; arrive manage tensor memory; may wait; 0a 0r 0w"},
    {"tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %r1}, [%r2];", "aligned; read tensor 8; may wait; 1a 0r 2w"},
    {"tcgen05.st.sync.aligned.32x32b.x2.b32 [%r2], {%r0, %r1};", "aligned; later write tensor 8; may wait; 1a 2r 0w"},
    {"tcgen05.wait::ld.sync.aligned;", "aligned; wait tensor memory; may wait; 0a 0r 0w"},
    {"tcgen05.fence::after_thread_sync;", "fence tensor memory; 0a 0r 0w"},
    {"tcgen05.cp.cta_group::1.128x256b [%r0], %rd0;",
     "tensor; later read shared async; later write tensor async; 1a 1r 0w"},
    {"tcgen05.shift.cta_group::1.down [%r0];", "tensor; later update tensor async; 1a 0r 0w"},
    {"tcgen05.mma.cta_group::1.kind::f16 [%r0], %rd0, %rd1, %r1, %p0;",
     "tensor; later read shared async; later update tensor async; 1a 4r 0w"},
    {"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r0];",
     "tensor; later arrive commit mbarrier release.cluster; 1a 0r 0w"},
};

constexpr Expectation geforce[] = {
    {"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, "
     "{%r4,%r5}, {%f0,%f1,%f2,%f3};",
     "aligned; may wait; 0a 10r 4w"},
    {"mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0 {%f0,%f1,%f2,%f3}, "
     "{%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3}, %r6, {%rs0,%rs1}, %r7, {2,3};",
     "aligned; may wait; 0a 14r 4w"},
    {"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e2m1.e5m2.f32.ue8m0 "
     "{%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%f0,%f1,%f2,%f3}, %r8, 0, %r9, {0,1}, %r10, {2,3};",
     "aligned; may wait; 0a 15r 4w"},
};

constexpr Expectation hopper[] = {
    {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd0, %rd1, 1, 1, 1, 0, 0;",
     "aligned; tensor; later read shared async; may wait; 0a 2r 4 laterw"},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, %rd1, %p0, 1, 1, 0;",
     "aligned; tensor; later read shared async; may wait; 0a 6 laterr 4 laterw"},
    {"wgmma.fence.sync.aligned;", "aligned; fence wgmma registers; may wait; 0a 0r 0w"},
    {"wgmma.commit_group.sync.aligned;", "aligned; commit groups; may wait; 0a 0r 0w"},
    {"wgmma.wait_group.sync.aligned 0;", "aligned; wait groups; may wait; 0a 0r 0w"},
};

constexpr const char* lanewise[] = {
#include "../alu/accepted_forms.inc"
    "rem.u32 %r0,%r1,%r2;",
    "addc.u32 %r0,%r1,%r2;",
    "subc.cc.u32 %r0,%r1,%r2;",
    "cos.approx.f32 %f0,%f1;",
    "vmax.s32.s32.s32 %r0,%r1,%r2;",
    "vsub2.s32.s32.s32 %r0,%r1,%r2,%r3;",
    "vabsdiff2.u32.u32.u32 %r0,%r1,%r2,%r3;",
    "vmin2.s32.s32.s32 %r0,%r1,%r2,%r3;",
    "vmax2.s32.s32.s32 %r0,%r1,%r2,%r3;",
    "vsub4.s32.s32.s32 %r0,%r1,%r2,%r3;",
    "vmax4.s32.s32.s32 %r0,%r1,%r2,%r3;",
};

std::string opcode_of(std::string_view text)
{
    if (text.starts_with('@')) {
        text.remove_prefix(text.find(' ') + 1);
    }
    return std::string(text.substr(0, text.find_first_of(" .;")));
}

}  // namespace

TEST_CASE("each kind of operation has the effects that PTX describes")
{
    for (const Expectation& expected : blackwell) {
        CAPTURE(expected.instruction);
        CHECK(effects_of(expected.instruction, "sm_100a", "b200") == std::string(expected.effects));
    }
    for (const Expectation& expected : hopper) {
        CAPTURE(expected.instruction);
        CHECK(effects_of(expected.instruction, "sm_90a", "h200") == std::string(expected.effects));
    }
    for (const Expectation& expected : geforce) {
        CAPTURE(expected.instruction);
        CHECK(effects_of(expected.instruction, "sm_120a", "rtx5090") == std::string(expected.effects));
    }
}

TEST_CASE("instructions that compute have effects on registers only")
{
    for (const std::string form : lanewise) {
        CAPTURE(form);
        const std::string effects = effects_of(form, "sm_100a", "b200");
        const bool collective = effects.find("named; may wait") != std::string::npos;
        for (const char* other : {"read ", "write ", "update ", "arrive", "tma", "tensor", "later", "clusters"}) {
            CHECK(effects.find(other) == std::string::npos);
        }
        CHECK((effects.ends_with("1w") || effects.ends_with("2w") || effects.ends_with("4w")));
        CHECK((collective || effects.find("wait") == std::string::npos));
    }
}

TEST_CASE("a schedule by priorities switches warps where others can notice it, and only there")
{
    const auto visible = [](const std::string& instruction, const char* target, const char* device) {
        return first_operation(instruction, target, device, [](const Program& program, std::uint32_t operation) {
            return std::string(program.operations[operation].visible ? "visible" : "not visible");
        });
    };
    for (const char* instruction : {
             "ld.volatile.shared.u32 %r0, [%r1];",
             "ld.relaxed.gpu.global.u32 %r0, [%rd0];",
             "st.release.gpu.global.u32 [%rd0], %r0;",
             "st.mmio.relaxed.sys.global.u32 [%rd0], %r0;",
             "atom.shared.add.u32 %r0, [%r1], 1;",
             "red.global.add.u32 [%rd0], %r0;",
             "bar.sync 0;",
             "bar.warp.sync %r0;",
             "barrier.cluster.arrive;",
             "mbarrier.init.shared::cta.b64 [%r0], 1;",
             "mbarrier.arrive.shared::cta.b64 %rd0, [%r0];",
             "mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], %r1;",
             "fence.acq_rel.gpu;",
             "fence.proxy.async;",
             "cp.async.ca.shared.global [%r0], [%rd0], 8;",
             "cp.async.wait_all;",
             "cp.async.bulk.commit_group;",
             "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r0], %r1;",
             "griddepcontrol.wait;",
             "setmaxnreg.inc.sync.aligned.u32 40;",
             "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %r1}, [%r2];",
             "tcgen05.mma.cta_group::1.kind::f16 [%r0], %rd0, %rd1, %r1, %p0;",
             "tcgen05.wait::ld.sync.aligned;",
             "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r0], [%r1];",
         }) {
        CAPTURE(instruction);
        CHECK(visible(instruction, "sm_100a", "b200") == "visible");
    }
    for (const char* instruction : {
             "add.u32 %r0, %r1, %r2;",
             "bra L;",
             "shfl.sync.bfly.b32 %r0|%p0, %r1, %r2, 31, %r3;",
             "ld.global.u32 %r0, [%rd0];",
             "st.shared.u32 [%r0], %r1;",
             "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r1}, [%r2];",
             "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd0], %rd1;",
             "cp.async.bulk.prefetch.L2.global [%rd0], %r0;",
             "mbarrier.pending_count.b64 %r0, %rd0;",
             "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p0, %rq0;",
         }) {
        CAPTURE(instruction);
        CHECK(visible(instruction, "sm_100a", "b200") == "not visible");
    }
    CHECK(visible("wgmma.fence.sync.aligned;", "sm_90a", "h200") == "visible");
}

TEST_CASE("every opcode of every family has an expectation")
{
    // Refused, whatever the form.
    std::set<std::string> known{"multimem", "tex", "tld4",    "txq",    "suld",      "sust",
                                "sured",    "suq", "istypep", "alloca", "stacksave", "stackrestore"};
    for (const auto& list : {std::span<const Expectation>(blackwell), std::span<const Expectation>(hopper)}) {
        for (const Expectation& expected : list) {
            known.insert(opcode_of(expected.instruction));
        }
    }
    for (const char* form : lanewise) {
        known.insert(opcode_of(form));
    }
    for (const auto& family :
         {integer_instructions(), floating_instructions(), conversion_instructions(), control_instructions(),
          memory_instructions(), barrier_instructions(), warp_instructions(), matrix_instructions(),
          copy_instructions(), wgmma_instructions(), tcgen05_instructions(), launch_control_instructions()}) {
        for (const InstructionEntry& entry : family) {
            INFO(std::string(entry.opcode));
            CHECK(known.contains(std::string(entry.opcode)));
        }
    }
}

TEST_CASE("a register and a range of registers of one name in an inner scope have rows of their own")
{
    std::string body;
    for (int i = 0; i < 5; ++i) {
        body +=
            "{\n.reg .b32 a; .reg .f16 a<2>; .reg .b16 b<2>;\ncvt.rn.f16x2.e4m3x2 a, %rs1;\nmov.b32 {a0, a1}, a;\n"
            "cvt.bf16.f16 b0, a0;\ncvt.bf16.f16 b1, a1;\nmov.b32 %r1, {b0, b1};\n}\n";
    }
    PtxRun run(module_text("sm_90a",
                           ".visible .entry k(.param .u64 out)\n{\n.reg .b64 %rd1; .reg .b32 %r<3>; .reg .b16 "
                           "%rs<3>;\nld.param.u64 %rd1, [out];\nmov.b16 %rs1, 0x3840;\n" +
                               body + "st.global.b32 [%rd1], %r1;\nret;\n}\n"),
               "h200");
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(1));
    REQUIRE(run.launch("k", {.block = {32, 1, 1}}, out).code == 0);
    CHECK(run.read<std::uint32_t>(out, 1)[0] == 0x3F804000);  // 1 and 2 as bf16
}
