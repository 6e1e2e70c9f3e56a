#include "machine/warp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/source_place.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"

namespace tessera::emulator {

namespace {

constexpr std::size_t row_alignment = 64;
constexpr std::uint64_t most_stack = 512 << 10;  // a thread's local memory, whatever limit is set

/// What a compiler needs at least for a call: the return address, and local variables that have an address.
std::uint64_t stack_bytes(const FunctionCode& function)
{
    return 8 + (std::uint64_t{function.local_bytes} + 7) / 8 * 8;
}

[[nodiscard]] std::byte* aligned(std::vector<std::byte>& storage) noexcept
{
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
    return storage.data() + ((row_alignment - address % row_alignment) % row_alignment);
}

}  // namespace

Warp::Warp(Cta& cta_, std::uint32_t index_, LaneMask lanes_)
    : cta(cta_),
      cluster(cta_.cluster),
      index(index_),
      agent(static_cast<Agent>(cta_.rank * ((cta_.threads + warp_size - 1) / warp_size) + index_)),
      lanes(lanes_),
      parameters(cluster.grid.request.parameters)
{
    const Grid& grid = cluster.grid;
    constants_storage_.resize(grid.program.warp_constant_bytes + row_alignment);
    bases_[1] = const_cast<std::byte*>(grid.program.constants.data());  // rows of constants are only read
    bases_[2] = aligned(constants_storage_);
    initialize_constants();
    local_stride_ = 0;
    auto first = std::make_unique<Split>();
    first->mask = lanes;
    first->pc = grid.code.entry;
    first->frame = new_frame(grid.code, nullptr);
    first->frame->references = 1;
    current_ = first.get();
    splits_.push_back(std::move(first));
    select(*current_);
}

Warp::~Warp() = default;

void Warp::initialize_constants()
{
    const Grid& grid = cluster.grid;
    const LaunchRequest& request = grid.request;
    const Dim3 block = request.block;
    const Dim3 in_cluster = position(cta.rank, request.cluster);
    const std::uint32_t warps = (cta.threads + warp_size - 1) / warp_size;
    const auto own = (static_cast<std::uint32_t>(cta.rank) << shared_rank_shift) + shared_base;
    for (const WarpConstantRow& constant : grid.program.warp_constants) {
        std::byte* out = bases_[2] + (constant.row & 0x3FFFFFFF);
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            const Dim3 thread = position(std::uint64_t{index} * warp_size + lane, block);
            const std::uint32_t bit = 1u << lane;
            // Dynamic shared memory follows the static part, aligned within the window.
            const std::uint32_t alignment = std::max(constant.offset, 1u);
            const std::uint32_t dynamic = (own + grid.dynamic_offset + alignment - 1) / alignment * alignment;
            std::uint64_t value = 0;
            switch (constant.what) {
                case WarpConstant::tid_x: value = thread.x; break;
                case WarpConstant::tid_y: value = thread.y; break;
                case WarpConstant::tid_z: value = thread.z; break;
                case WarpConstant::ntid_x: value = block.x; break;
                case WarpConstant::ntid_y: value = block.y; break;
                case WarpConstant::ntid_z: value = block.z; break;
                case WarpConstant::ctaid_x: value = cta.id.x; break;
                case WarpConstant::ctaid_y: value = cta.id.y; break;
                case WarpConstant::ctaid_z: value = cta.id.z; break;
                case WarpConstant::nctaid_x: value = request.grid.x; break;
                case WarpConstant::nctaid_y: value = request.grid.y; break;
                case WarpConstant::nctaid_z: value = request.grid.z; break;
                case WarpConstant::laneid: value = lane; break;
                case WarpConstant::warpid: value = index; break;
                case WarpConstant::nwarpid: value = warps; break;
                case WarpConstant::smid: value = cta.multiprocessor(); break;
                case WarpConstant::nsmid: value = grid.device.multiprocessors; break;
                case WarpConstant::gridid: value = grid.launch_id; break;
                case WarpConstant::lanemask_eq: value = bit; break;
                case WarpConstant::lanemask_le: value = bit | (bit - 1); break;
                case WarpConstant::lanemask_lt: value = bit - 1; break;
                case WarpConstant::lanemask_ge: value = ~(bit - 1); break;
                case WarpConstant::lanemask_gt: value = ~(bit | (bit - 1)); break;
                case WarpConstant::clusterid_x: value = cluster.id.x; break;
                case WarpConstant::clusterid_y: value = cluster.id.y; break;
                case WarpConstant::clusterid_z: value = cluster.id.z; break;
                case WarpConstant::nclusterid_x: value = grid.clusters.x; break;
                case WarpConstant::nclusterid_y: value = grid.clusters.y; break;
                case WarpConstant::nclusterid_z: value = grid.clusters.z; break;
                case WarpConstant::cluster_ctaid_x: value = in_cluster.x; break;
                case WarpConstant::cluster_ctaid_y: value = in_cluster.y; break;
                case WarpConstant::cluster_ctaid_z: value = in_cluster.z; break;
                case WarpConstant::cluster_nctaid_x: value = request.cluster.x; break;
                case WarpConstant::cluster_nctaid_y: value = request.cluster.y; break;
                case WarpConstant::cluster_nctaid_z: value = request.cluster.z; break;
                case WarpConstant::cluster_ctarank: value = cta.rank; break;
                case WarpConstant::cluster_nctarank: value = request.cluster.count(); break;
                case WarpConstant::is_explicit_cluster: value = request.explicit_cluster ? 1 : 0; break;
                case WarpConstant::total_smem_size: value = grid.shared_bytes; break;
                case WarpConstant::dynamic_smem_size: value = request.dynamic_shared; break;
                case WarpConstant::aggr_smem_size:
                    value = grid.shared_bytes + grid.device.reserved_shared_per_cta;
                    break;
                case WarpConstant::shared_address: value = own + constant.offset; break;
                case WarpConstant::dynamic_shared_address: value = dynamic; break;
            }
            std::memcpy(out + std::size_t{lane} * constant.bytes, &value, std::min(constant.bytes, 8u));
        }
    }
}

// ---- frames ----

Frame* Warp::new_frame(const FunctionCode& function, Frame* caller)
{
    std::unique_ptr<Frame> frame;
    if (spare_frames_.empty()) {
        frame = std::make_unique<Frame>();
    } else {
        frame = std::move(spare_frames_.back());
        spare_frames_.pop_back();
    }
    frame->function = &function;
    frame->caller = caller;
    frame->call = nullptr;
    frame->references = 0;
    frame->generation = ++calls_;
    frame->stack = caller == nullptr ? 0 : caller->stack + stack_bytes(function);
    const std::size_t bytes = function.register_bytes + row_alignment;
    if (frame->storage.size() < bytes) {
        frame->storage.resize(bytes);
    }
    frame->registers = aligned(frame->storage);
    frame->parameters.resize(std::size_t{function.parameter_bytes} * warp_size);
    frame->local_base = caller == nullptr ? 0 : caller->local_base + caller->function->local_bytes;
    frame->local_base = (frame->local_base + 15) / 16 * 16;
    const std::uint32_t top = frame->local_base + function.local_bytes;
    if (top > local_stride_) {  // deeper than before: each lane's local memory grows
        const std::uint32_t stride = std::max(top, 2 * local_stride_);
        std::vector<std::byte> grown(std::size_t{stride} * warp_size);
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            std::copy_n(local_.data() + std::size_t{lane} * local_stride_, local_stride_,
                        grown.data() + std::size_t{lane} * stride);
        }
        local_ = std::move(grown);
        local_stride_ = stride;
    }
    if (caller != nullptr) {
        ++caller->references;
    }
    frames_.push_back(std::move(frame));
    return frames_.back().get();
}

/// Only recursion can exceed the limit: a compiler knows what other calls need, and a driver provides it.
void Warp::check_stack(const Operation& operation, LaneMask active, const FunctionCode& callee)
{
    const Frame* const caller = current_->frame;
    const std::uint64_t limit = std::min(cluster.grid.request.stack_limit, most_stack);
    const std::uint64_t needed = caller->stack + stack_bytes(callee);
    if (needed <= limit) {
        return;
    }
    unsigned depth = 0;
    for (const Frame* frame = caller; frame != nullptr; frame = frame->caller) {
        depth += frame->function == &callee ? 1 : 0;
    }
    if (depth != 0) {
        fault(
            operation, FindingKind::stack_overflow, error_hardware_stack, active,
            fmt::format("{} is called again inside of {} calls of it, and needs {} bytes of stack in each thread; the "
                        "limit is {}. End the recursion, or raise the limit with cudaDeviceSetLimit("
                        "cudaLimitStackSize, bytes)",
                        shown_function(callee.name), depth, needed, limit));
    }
}

void Warp::release(Frame* frame)
{
    while (frame != nullptr && --frame->references == 0) {
        Frame* caller = frame->caller;
        if (follows_) {
            undefined_.forget(frame);
            in_flight_.forget(frame);
            update_follows();
        }
        // From the back: the innermost calls end first.
        const auto found =
            std::find_if(frames_.rbegin(), frames_.rend(), [&](const auto& owned) { return owned.get() == frame; });
        spare_frames_.push_back(std::move(*found));
        *found = std::move(frames_.back());
        frames_.pop_back();
        frame = caller;
    }
}

std::byte* Warp::local_bytes(unsigned lane, std::uint64_t address, std::uint64_t size)
{
    if (size > local_stride_ || address > local_stride_ - size) {
        return nullptr;
    }
    return local_.data() + std::size_t{lane} * local_stride_ + address;
}

// ---- reports ----

bool Warp::checks() const noexcept { return cluster.options().check; }

void Warp::report(const Operation& operation, FindingKind kind, LaneMask lanes_, FindingText text, bool error)
{
    cluster.report_at(&operation, cta.rank, index, lanes_, kind, std::move(text), error);
}

void Warp::fault(const Operation& operation, FindingKind kind, int code, LaneMask lanes_, std::string message)
{
    report(operation, kind, lanes_, message, true);
    throw Fault(code, message);
}

// ---- execution ----

const Operation& Warp::operation_at(std::uint32_t pc) const noexcept { return cluster.grid.operations[pc]; }

unsigned Warp::run(unsigned budget)
{
    const Operation* const operations = cluster.grid.operations;
    auto& counts = cluster.statistics.warp_instructions;
    unsigned done = 0;
    while (done < budget && !finished()) {
        Split* split = pick();
        if (split == nullptr) {
            break;
        }
        select(*split);
        while (done < budget) {
            const Operation& operation = operations[split->pc];
            if (operation.join && !split->joins.empty() && split->wait.kind == Wait::Kind::none &&
                !arrive_at_join(*split)) {
                break;
            }
            LaneMask active = split->mask;
            if (operation.guard != no_row) {
                const LaneMask guard = predicate(operation.guard);
                active &= operation.guard_negated ? ~guard : guard;
            }
            bool ready = true;
            if (operation.names_late_registers && active != 0) [[unlikely]] {
                ready = access_late_registers(*this, operation, active);
            }
            if (follows_ && ready) [[unlikely]] {
                pass_on_undefined(operation);
            }
            ++done;
            ++executed_;
            if (active == 0) {
                ++split->pc;
                continue;
            }
            const Step step = ready ? operation.execute(*this, operation, active) : Step::wait;
            if (step == Step::next) [[likely]] {
                ++counts[static_cast<std::size_t>(operation.kind)];
                split->wait.kind = Wait::Kind::none;
                ++split->pc;
                continue;
            }
            if (step == Step::wait) {
                --done;
                if (split->wait.kind == Wait::Kind::none) {
                    continue;  // lanes have joined: try again at once
                }
                // Nothing was executed. If this counted, two splits that wait for lanes would wake each other forever.
                --executed_;
                split->seen = split->wait.kind == Wait::Kind::lanes ? executed_ + cluster.changes() : cluster.changes();
                break;
            }
            if (step == Step::later) {
                --executed_;
                split->wait.kind = Wait::Kind::none;
                split->last_run = executed_;
                return done - 1;
            }
            ++counts[static_cast<std::size_t>(operation.kind)];
            if (step == Step::yield) {
                split->wait.kind = Wait::Kind::none;
                ++split->pc;
                split->last_run = executed_;
                return done;
            }
            if (step == Step::ended) {
                if (current_ == nullptr) {  // all its lanes have exited
                    split = nullptr;
                    break;
                }
                continue;
            }
            // Step::jump: the split continues elsewhere, or other lanes have their turn.
            split->wait.kind = Wait::Kind::none;
            if (splits_.size() > 1) {
                break;
            }
        }
        if (split != nullptr) {
            split->last_run = executed_;
        }
    }
    return done;
}

}  // namespace tessera::emulator
