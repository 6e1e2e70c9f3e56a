#include "machine/warp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

#include "base/source_place.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"
#include "machine/spare_buffers.hpp"

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
    constants_storage_ = SpareBuffers::of_thread().take(grid.program.warp_constant_bytes + row_alignment, std::byte{0});
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

Warp::~Warp()
{
    SpareBuffers& spare = SpareBuffers::of_thread();
    spare.give_back(std::move(constants_storage_));
    spare.give_back(std::move(local_));
    spare.give_back(std::move(kernel_frame_.storage));
    for (auto* const frames : {&frames_, &spare_frames_}) {
        for (const auto& frame : *frames) {
            spare.give_back(std::move(frame->storage));
        }
    }
}

void Warp::initialize_constants()
{
    const Grid& grid = cluster.grid;
    const LaunchRequest& request = grid.request;
    const Dim3 block = request.block;
    const Dim3 in_cluster = position(cta.rank, request.cluster);
    const std::uint32_t warps = (cta.threads + warp_size - 1) / warp_size;
    const auto own = (static_cast<std::uint32_t>(cta.rank) << shared_rank_shift) + shared_base;
    // Dynamic shared memory follows the static part, aligned within the window.
    const auto dynamic = [&](std::uint32_t alignment) {
        return (own + grid.dynamic_offset + alignment - 1) / alignment * alignment;
    };
    const auto by_lane = [&](WarpConstant what, unsigned lane) -> std::uint64_t {
        const std::uint32_t thread = index * warp_size + lane;
        const std::uint32_t bit = 1u << lane;
        switch (what) {
            case WarpConstant::tid_x: return thread % block.x;
            case WarpConstant::tid_y: return thread / block.x % block.y;
            case WarpConstant::tid_z: return thread / block.x / block.y;
            case WarpConstant::laneid: return lane;
            case WarpConstant::lanemask_eq: return bit;
            case WarpConstant::lanemask_le: return bit | (bit - 1);
            case WarpConstant::lanemask_lt: return bit - 1;
            case WarpConstant::lanemask_ge: return ~(bit - 1);
            case WarpConstant::lanemask_gt: return ~(bit | (bit - 1));
            default: return 0;
        }
    };
    const auto of_warp = [&](const WarpConstantRow& constant) -> std::optional<std::uint64_t> {
        switch (constant.what) {
            case WarpConstant::ntid_x: return block.x;
            case WarpConstant::ntid_y: return block.y;
            case WarpConstant::ntid_z: return block.z;
            case WarpConstant::ctaid_x: return cta.id.x;
            case WarpConstant::ctaid_y: return cta.id.y;
            case WarpConstant::ctaid_z: return cta.id.z;
            case WarpConstant::nctaid_x: return request.grid.x;
            case WarpConstant::nctaid_y: return request.grid.y;
            case WarpConstant::nctaid_z: return request.grid.z;
            case WarpConstant::warpid: return index;
            case WarpConstant::nwarpid: return warps;
            case WarpConstant::smid: return cta.multiprocessor();
            case WarpConstant::nsmid: return grid.device.multiprocessors;
            case WarpConstant::gridid: return grid.launch_id;
            case WarpConstant::clusterid_x: return cluster.id.x;
            case WarpConstant::clusterid_y: return cluster.id.y;
            case WarpConstant::clusterid_z: return cluster.id.z;
            case WarpConstant::nclusterid_x: return grid.clusters.x;
            case WarpConstant::nclusterid_y: return grid.clusters.y;
            case WarpConstant::nclusterid_z: return grid.clusters.z;
            case WarpConstant::cluster_ctaid_x: return in_cluster.x;
            case WarpConstant::cluster_ctaid_y: return in_cluster.y;
            case WarpConstant::cluster_ctaid_z: return in_cluster.z;
            case WarpConstant::cluster_nctaid_x: return request.cluster.x;
            case WarpConstant::cluster_nctaid_y: return request.cluster.y;
            case WarpConstant::cluster_nctaid_z: return request.cluster.z;
            case WarpConstant::cluster_ctarank: return cta.rank;
            case WarpConstant::cluster_nctarank: return request.cluster.count();
            case WarpConstant::is_explicit_cluster: return request.explicit_cluster ? 1 : 0;
            case WarpConstant::total_smem_size: return grid.shared_bytes;
            case WarpConstant::dynamic_smem_size: return request.dynamic_shared;
            case WarpConstant::aggr_smem_size: return grid.shared_bytes + grid.device.reserved_shared_per_cta;
            case WarpConstant::shared_address: return own + constant.offset;
            case WarpConstant::dynamic_shared_address: return dynamic(std::max(constant.offset, 1u));
            case WarpConstant::tid_x:
            case WarpConstant::tid_y:
            case WarpConstant::tid_z:
            case WarpConstant::laneid:
            case WarpConstant::lanemask_eq:
            case WarpConstant::lanemask_le:
            case WarpConstant::lanemask_lt:
            case WarpConstant::lanemask_ge:
            case WarpConstant::lanemask_gt: break;
        }
        return std::nullopt;  // each lane has its own
    };
    for (const WarpConstantRow& constant : grid.program.warp_constants) {
        std::array<std::uint64_t, warp_size> values;
        if (const std::optional<std::uint64_t> same = of_warp(constant)) {
            if (constant.bytes == 4) {
                std::fill_n(row<std::uint32_t>(constant.row), warp_size, static_cast<std::uint32_t>(*same));
                continue;
            }
            values.fill(*same);
        } else {
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                values[lane] = by_lane(constant.what, lane);
            }
        }
        std::byte* const out = row<std::byte>(constant.row);
        if (constant.bytes == 8) {
            std::memcpy(out, values.data(), sizeof values);
        } else if (constant.bytes == 4) {
            std::ranges::transform(values, row<std::uint32_t>(constant.row),
                                   [](std::uint64_t value) { return static_cast<std::uint32_t>(value); });
        } else {
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                std::memcpy(out + std::size_t{lane} * constant.bytes, &values[lane], std::min(constant.bytes, 8u));
            }
        }
    }
}

// ---- frames ----

Frame* Warp::new_frame(const FunctionCode& function, Frame* caller)
{
    Frame* frame = &kernel_frame_;
    if (caller != nullptr) {
        if (spare_frames_.empty()) {
            frames_.push_back(std::make_unique<Frame>());
        } else {
            frames_.push_back(std::move(spare_frames_.back()));
            spare_frames_.pop_back();
        }
        frame = frames_.back().get();
    }
    frame->function = &function;
    frame->caller = caller;
    frame->call = nullptr;
    frame->references = 0;
    frame->generation = ++calls_;
    frame->stack = caller == nullptr ? 0 : caller->stack + stack_bytes(function);
    const std::size_t bytes = function.register_bytes + row_alignment;
    if (frame->storage.empty()) {
        frame->storage = SpareBuffers::of_thread().take(bytes, std::byte{0});
    } else if (frame->storage.size() < bytes) {
        frame->storage.resize(bytes);
    }
    frame->registers = aligned(frame->storage);
    frame->parameters.resize(std::size_t{function.parameter_bytes} * warp_size);
    frame->local_base = caller == nullptr ? 0 : caller->local_base + caller->function->local_bytes;
    frame->local_base = (frame->local_base + 15) / 16 * 16;
    const std::uint32_t top = frame->local_base + function.local_bytes;
    if (top > local_stride_) {  // deeper than before: each lane's local memory grows
        const std::uint32_t stride = std::max(top, 2 * local_stride_);
        std::vector<std::byte> grown = SpareBuffers::of_thread().take(std::size_t{stride} * warp_size, std::byte{0});
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
    return frame;
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
        if (frame != &kernel_frame_) {
            // From the back: the innermost calls end first.
            const auto found =
                std::find_if(frames_.rbegin(), frames_.rend(), [&](const auto& owned) { return owned.get() == frame; });
            spare_frames_.push_back(std::move(*found));
            *found = std::move(frames_.back());
            frames_.pop_back();
        }
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

bool Warp::repeats(const Operation& operation, FindingKind kind, LaneMask lanes_, std::uint64_t detail)
{
    // With Options::strict, each finding ends the launch with its own message.
    return !cluster.options().strict && cluster.repeated.count({&operation, detail, cta.rank, kind}, lanes_);
}

bool Warp::is_known(const Operation& operation, FindingKind kind, std::uint64_t detail) const
{
    return !cluster.options().strict && cluster.repeated.contains({&operation, detail, cta.rank, kind});
}

void Warp::report_first(const Operation& operation, FindingKind kind, LaneMask lanes_, FindingText text,
                        std::uint64_t detail)
{
    Report::Known known;
    cluster.report_at(&operation, cta.rank, index, lanes_, kind, std::move(text), false, &known);
    cluster.repeated.add({&operation, detail, cta.rank, kind}, known);
}

void Warp::fault(const Operation& operation, FindingKind kind, int code, LaneMask lanes_, std::string message)
{
    report(operation, kind, lanes_, message, true);
    throw Fault(code, message);
}

// ---- execution ----

const Operation& Warp::operation_at(std::uint32_t pc) const noexcept { return cluster.grid.operations[pc]; }

template <bool to_visible>
unsigned Warp::run(unsigned budget)
{
    has_yielded_ = false;
    const Operation* const operations = cluster.grid.operations;
    auto& counts = cluster.statistics.warp_instructions;
    unsigned done = 0;
    while (done < budget && !finished()) {
        Split* split = pick();
        if (split == nullptr) {
            break;
        }
        select(*split);
        const Operation* next = operations + split->pc;
        while (done < budget) {
            const Operation& operation = *next;
            LaneMask active = 0;
            bool ready = true;
            if (operation.straight && !follows_ && !(to_visible && operation.visible)) [[likely]] {
                active = split->mask;
            } else {
                if (operation.join && !split->joins.empty() && split->wait.kind == Wait::Kind::none &&
                    !arrive_at_join(*split)) {
                    break;
                }
                if (to_visible && operation.visible && done > 0) {
                    split->last_run = executed_;
                    return done;
                }
                active = split->mask;
                if (operation.guard != no_row) {
                    const LaneMask guard = predicate(operation.guard);
                    active &= operation.guard_negated ? ~guard : guard;
                }
                if (operation.names_late_registers && active != 0) [[unlikely]] {
                    ready = access_late_registers(*this, operation, active);
                }
                if (follows_ && ready) {
                    pass_on_undefined(operation);
                }
            }
            ++done;
            ++executed_;
            if (active == 0) {
                ++split->pc;
                ++next;
                continue;
            }
            const Step step = ready ? operation.execute(*this, operation, active) : Step::wait;
            if (step == Step::next) [[likely]] {
                ++counts[static_cast<std::size_t>(operation.kind)];
                split->wait.kind = Wait::Kind::none;
                ++split->pc;
                ++next;
                continue;
            }
            if (step == Step::wait) {
                --done;
                if (split->wait.kind == Wait::Kind::none) {
                    next = operations + split->pc;
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
                has_yielded_ = true;
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
                next = operations + split->pc;
                continue;
            }
            // Step::jump: the split continues elsewhere, or other lanes have their turn.
            split->wait.kind = Wait::Kind::none;
            if (splits_.size() > 1) {
                break;
            }
            next = operations + split->pc;
        }
        if (split != nullptr) {
            split->last_run = executed_;
        }
    }
    return done;
}

template unsigned Warp::run<false>(unsigned budget);
template unsigned Warp::run<true>(unsigned budget);

}  // namespace tessera::emulator
