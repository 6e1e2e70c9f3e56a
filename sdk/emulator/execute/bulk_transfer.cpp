#include "execute/bulk_transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/rounding.hpp"
#include "machine/fault.hpp"
#include "machine/mbarrier_access.hpp"
#include "machine/memory_access.hpp"
#include "machine/tile_provenance.hpp"

namespace tessera::emulator {

namespace {

std::uint32_t rank_of(std::uint32_t address) { return address >> shared_rank_shift; }

/// Start of the bytes that a swizzle keeps together.
std::uint32_t round_down(std::uint32_t value, std::uint32_t multiple) { return value / multiple * multiple; }

/// A swizzle moves bytes only within a line of this size.
constexpr std::uint32_t swizzle_line = 128;

/// Calls body(mode) with the mode as a constant, so that the loops over pieces contain no switch.
template <typename Body>
void with_swizzle(TensorSwizzle mode, Body&& body)
{
    const auto constant = [&]<TensorSwizzle value>() { body(std::integral_constant<TensorSwizzle, value>{}); };
    switch (mode) {
        case TensorSwizzle::none: constant.template operator()<TensorSwizzle::none>(); break;
        case TensorSwizzle::span_32: constant.template operator()<TensorSwizzle::span_32>(); break;
        case TensorSwizzle::span_64: constant.template operator()<TensorSwizzle::span_64>(); break;
        case TensorSwizzle::span_128: constant.template operator()<TensorSwizzle::span_128>(); break;
        case TensorSwizzle::span_128_atom_32: constant.template operator()<TensorSwizzle::span_128_atom_32>(); break;
        case TensorSwizzle::span_128_atom_32_flip_8:
            constant.template operator()<TensorSwizzle::span_128_atom_32_flip_8>();
            break;
        case TensorSwizzle::span_128_atom_64: constant.template operator()<TensorSwizzle::span_128_atom_64>(); break;
    }
}

}  // namespace

// ---- common parts ----

void BulkTransfer::begin(Cta& cta, std::uint32_t address, bool writes)
{
    if (cta.shadow != nullptr) {
        cta.shadow->begin(agent, offset_in_cta(address) - shared_base, box_.bytes, writes, what_, line_of(operation));
    }
}

void BulkTransfer::end(Cta& cta)
{
    if (cta.shadow != nullptr) {
        cta.shadow->end(agent);
    }
}

template <typename Body>
void BulkTransfer::for_each_piece(Cta& cta, std::uint32_t address, const BoxRun& run, Body&& body)
{
    const std::uint32_t start = offset_in_cta(address) + run.linear;
    const std::uint32_t first_line = round_down(start, swizzle_line);
    const std::uint32_t lines = round_up(start + run.shared_bytes, swizzle_line) - first_line;
    if (box_.swizzle == TensorSwizzle::none) {
        body(cta.shared_bytes(start, run.shared_bytes), run.shared_bytes, 0U);
    } else if (std::byte* const bytes = cta.shared_bytes(first_line, lines); bytes != nullptr) {
        with_swizzle(box_.swizzle, [&](auto mode) {
            constexpr std::uint32_t atom = swizzle_atom(mode);
            for (std::uint32_t done = 0; done < run.shared_bytes;) {
                const std::uint32_t linear = start + done;
                std::byte* const piece = bytes + (swizzle(mode, linear) - first_line);
                const std::uint32_t size = std::min(run.shared_bytes - done, atom - linear % atom);
                if (size == atom) {
                    body(piece, std::integral_constant<std::uint32_t, atom>{}, done);
                } else {
                    body(piece, size, done);
                }
                done += size;
            }
        });
    } else {
        // The first or last line may be incomplete: skip what a swizzle moves out of shared memory.
        const std::uint32_t atom = swizzle_atom(box_.swizzle);
        for (std::uint32_t done = 0; done < run.shared_bytes;) {
            const std::uint32_t linear = start + done;
            const std::uint32_t size = std::min(run.shared_bytes - done, atom - linear % atom);
            if (std::byte* const piece = cta.shared_bytes(swizzle(box_.swizzle, linear), size); piece != nullptr) {
                body(piece, size, done);
            }
            done += size;
        }
    }
}

void BulkTransfer::check(Cluster& cluster, Cta& cta, std::uint32_t address, std::size_t first, std::size_t last,
                         bool writes)
{
    if (cta.shadow == nullptr) {
        return;
    }
    const KnownOfWork known(cluster, *this);
    const auto access = [&](std::uint32_t start, std::uint32_t size) {
        const std::uint32_t offset = start - shared_base;
        const auto found = writes ? cta.shadow->write(agent, offset, size, Proxy::async, what_, line_of(operation),
                                                      false, Clocks::any_lane, &known)
                                  : cta.shadow->read(agent, offset, size, Proxy::async, what_, line_of(operation),
                                                     false, nullptr, Clocks::any_lane, &known);
        if (found) {
            cluster.report(*this, *found);
        }
    };
    // A swizzle exchanges atoms within a line of `span` bytes, so whole lines stay in place.
    const std::uint32_t span = std::max<std::uint32_t>(swizzle_span(box_.swizzle), 1);
    for (std::size_t i = first; i < last;) {
        const std::uint32_t start = offset_in_cta(address) + box_.runs[i].linear;
        std::uint32_t stop = start + box_.runs[i].shared_bytes;
        for (++i; i < last && offset_in_cta(address) + box_.runs[i].linear == stop; ++i) {
            stop += box_.runs[i].shared_bytes;
        }
        const std::uint32_t inner_start = std::min(round_up(start, span), stop);
        const std::uint32_t inner_stop = std::max(round_down(stop, span), inner_start);
        if (inner_stop > inner_start) {
            access(inner_start, inner_stop - inner_start);
        }
        const std::uint32_t atom = swizzle_atom(box_.swizzle);
        const auto atoms = [&](std::uint32_t from, std::uint32_t to) {
            for (std::uint32_t at = from; at < to;) {
                const std::uint32_t size = std::min(to - at, atom - at % atom);
                if (cta.shared_bytes(swizzle(box_.swizzle, at), size) != nullptr) {
                    access(swizzle(box_.swizzle, at), size);
                }
                at += size;
            }
        };
        atoms(start, inner_start);
        atoms(inner_stop, stop);
    }
}

std::byte* BulkTransfer::global(Cluster& cluster, std::uint64_t address, std::uint64_t size, Direction direction)
{
    GlobalProblem problem;
    std::byte* const bytes = locate_global(cluster, address, size, direction, problem);
    if (bytes == nullptr) {
        cluster.fault(*this, problem.kind, error_illegal_address, fmt::format("{}: {}", what_, problem.text));
    }
    if (!problem.text.empty()) {
        cluster.report(*this, problem.kind, {fmt::format("{}: {}", what_, problem.text), cause_in(cluster, address)});
    }
    return bytes;
}

void BulkTransfer::report_exited(Cluster& cluster, const Cta& cta, bool writes)
{
    if (!cta.started || !cta.exited()) {
        return;
    }
    cluster.report(
        *this, FindingKind::cluster_protocol,
        writes
            ? fmt::format("{} writes shared memory of CTA {}, which has exited: wait for the copy, or synchronize the "
                          "cluster, before a CTA exits",
                          what_, cta.rank)
            : fmt::format("{} reads shared memory of CTA {}, which has exited: cp.async.bulk.wait_group.read (or the "
                          "barrier that it completes on) is missing before the CTA exits",
                          what_, cta.rank));
}

void BulkTransfer::report_exit_before_read(Cluster& cluster, const Cta& cta)
{
    if (cluster.options().check && cluster.options().exits_before_read && cta.started && cta.exited()) {
        cluster.report(
            *this, FindingKind::exit_before_read,
            fmt::format("{} reads shared memory of CTA {}, which has exited: this relies on hardware that keeps the "
                        "memory until it is read; execute cp.async.bulk.wait_group.read before the CTA exits",
                        what_, cta.rank));
    }
}

std::size_t BulkTransfer::portion(Cluster& cluster, std::size_t left)
{
    if (cluster.options().schedule == Schedule::in_order || left < 2 || cluster.choose(Choice::portion, 2) == 0) {
        return left;
    }
    return 1 + cluster.choose(Choice::portion, static_cast<std::uint32_t>(left - 1));
}

// ---- global to shared ----

LoadTransfer::LoadTransfer(const char* what, Warp& warp, SharedBox box, std::vector<LoadTarget> targets,
                           std::optional<TensorMap> map)
    : BulkTransfer(what, warp, std::move(box)),
      targets_(std::move(targets)),
      progress_(targets_.size()),
      map_(std::move(map))
{
    kind = Kind::load;
    converts_ = map_ && converts_elements(map_->element);
    for (const BoxRun& run : box_.runs) {
        warp.cluster.statistics.tma_global_read_bytes += run.inside ? run.global_bytes : 0;
    }
}

void LoadTransfer::watch()
{
    for (const LoadTarget& target : targets_) {
        begin(*target.cta, target.address, true);
    }
    GlobalShadow* const global = warp_.cluster.global_shadow.get();
    if (global == nullptr || !global->written()) {
        return;
    }
    const KnownOfWork known(warp_.cluster, *this);
    for (const BoxRun& run : box_.runs) {
        if (!run.inside) {
            continue;
        }
        if (const auto found = global->bulk_load(warp_.agent, run.global, run.global_bytes, what_, &known)) {
            warp_.cluster.report(*this, *found);
            return;
        }
    }
}

bool LoadTransfer::step(Cluster& cluster)
{
    const bool in_order = cluster.options().schedule == Schedule::in_order;
    // Each receiver progresses on its own.
    std::size_t chosen = 0;
    std::size_t open = 0;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
        if (!progress_[i].signalled) {
            ++open;
            chosen = open == 1 || (!in_order && cluster.choose(Choice::receiver, static_cast<std::uint32_t>(open)) == 0)
                         ? i
                         : chosen;
        }
    }
    if (open == 0) {
        return true;
    }
    const LoadTarget& target = targets_[chosen];
    Progress& progress = progress_[chosen];
    if (const std::size_t left = box_.runs.size() - progress.runs; left != 0) {
        const std::size_t count = portion(cluster, left);
        move(cluster, target, progress.runs, progress.runs + count);
        progress.runs += count;
        return false;
    }
    signal(cluster, target);
    progress.signalled = true;
    return open == 1;
}

void LoadTransfer::move(Cluster& cluster, const LoadTarget& target, std::size_t first, std::size_t last)
{
    if (first == 0) {
        report_exited(cluster, *target.cta, true);
    }
    check(cluster, *target.cta, target.address, first, last, true);
    std::vector<std::byte> staged;  // rows that are not plain copies
    for (std::size_t i = first; i < last; ++i) {
        const BoxRun& run = box_.runs[i];
        const std::byte* source = run.inside ? global(cluster, run.global, run.global_bytes, Direction::read) : nullptr;
        if (source == nullptr || run.global_bytes != run.shared_bytes || converts_) {
            stage(run, source, staged);
            source = staged.data();
        }
        for_each_piece(*target.cta, target.address, run, [&](std::byte* bytes, auto size, std::uint32_t done) {
            std::memcpy(bytes, source + done, size);
        });
        cluster.statistics.tma_load_bytes += run.shared_bytes;
    }
    if (map_ && last == box_.runs.size() && target.cta->shadow != nullptr) {
        if (target.cta->tiles == nullptr) {
            target.cta->tiles = std::make_unique<TileProvenance>();
        }
        target.cta->tiles->loaded(*map_, offset_in_cta(target.address), box_.bytes, line_of(operation));
    }
    cluster.progress();
}

/// Makes the bytes of a run as they are in shared memory: padded, converted, or filled if `source` is null.
void LoadTransfer::stage(const BoxRun& run, const std::byte* source, std::vector<std::byte>& staged) const
{
    staged.assign(run.shared_bytes, std::byte{0});
    if (source != nullptr) {
        std::memcpy(staged.data(), source, run.global_bytes);
        if (converts_) {
            convert_loaded(*map_, staged.data(), staged.size());
        }
    } else if (map_ && map_->fill != TensorFill::zeros) {
        const std::array<std::byte, 8> fill = fill_pattern(*map_);
        for (std::size_t at = 0; at < staged.size(); ++at) {
            staged[at] = fill[at % fill.size()];
        }
    }
}

void LoadTransfer::signal(Cluster& cluster, const LoadTarget& target)
{
    end(*target.cta);
    Cta* const cta = cluster.cta_of(target.barrier);
    if (cta != nullptr) {
        if (const auto found = cta->mbarriers.find(offset_in_cta(target.barrier));
            found != cta->mbarriers.end() && found->second.copies != 0) {
            --found->second.copies;
        }
    }
    // Padding is not counted: elements that need less space in global than in shared memory complete their packed
    // bytes. CUTLASS expects this in its mixed-precision kernels.
    std::uint32_t bytes = 0;
    for (const BoxRun& run : box_.runs) {
        bytes += run.shared_bytes;
    }
    if (map_) {
        bytes = bytes * global_bits(map_->element) / shared_bits(map_->element);
    }
    async_arrive(cluster, *this, target.barrier, 0, bytes);
}

std::string LoadTransfer::describe() const
{
    std::string text = fmt::format("{} of {} bytes to", what_, box_.bytes);
    for (std::size_t i = 0; i < targets_.size(); ++i) {
        if (!progress_[i].signalled) {
            text +=
                fmt::format(" shared {:#x} of CTA {} (mbarrier {:#x} of CTA {})", offset_in_cta(targets_[i].address),
                            targets_[i].cta->rank, offset_in_cta(targets_[i].barrier), rank_of(targets_[i].barrier));
        }
    }
    return text;
}

// ---- shared to global ----

StoreTransfer::StoreTransfer(const char* what, Warp& warp, SharedBox box, std::uint32_t source,
                             CopyGroups::Sequence sequence, Reduce reduce, std::uint16_t byte_mask)
    : BulkTransfer(what, warp, std::move(box)),
      source_(source),
      sequence_(sequence),
      reduce_(reduce),
      byte_mask_(byte_mask)
{
    kind = Kind::store;
    meets_clusters = reduce != nullptr;
}

void StoreTransfer::watch()
{
    begin(warp_.cta, source_, false);
    if (GlobalShadow* const global = warp_.cluster.global_shadow.get()) {
        for (const BoxRun& run : box_.runs) {
            if (run.inside) {
                global->bulk_store(agent, warp_.cta.rank, run.global, run.global_bytes, byte_mask_, what_,
                                   line_of(operation));
            }
        }
    }
}

void StoreTransfer::read_source(Cluster& cluster)
{
    Cta& cta = warp_.cta;
    report_exit_before_read(cluster, cta);
    check(cluster, cta, source_, 0, box_.runs.size(), false);
    data_.resize(box_.bytes);
    for (const BoxRun& run : box_.runs) {
        for_each_piece(cta, source_, run, [&](const std::byte* bytes, auto size, std::uint32_t done) {
            std::memcpy(data_.data() + run.linear + done, bytes, size);
        });
    }
    cluster.statistics.tma_store_bytes += box_.bytes;
    end(cta);
    SyncPoint& point = warp_.bulk_copies.reached(sequence_, CopyGroups::Stage::source_read);
    if (cluster.options().check) {
        cluster.clocks.complete_async(agent, point);
    }
    cluster.notify();
    read_ = true;
}

void StoreTransfer::write(Cluster& cluster, const BoxRun& run)
{
    if (!run.inside || run.global_bytes == 0) {
        return;
    }
    put(global(cluster, run.global, run.global_bytes, Direction::write), run.linear, run.global_bytes);
    write_overrun(cluster, run);
}

void StoreTransfer::put(std::byte* target, std::uint32_t linear, std::uint32_t bytes) const
{
    const std::byte* const source = data_.data() + linear;
    if (reduce_ != nullptr) {
        reduce_(target, source, bytes);
    } else if (byte_mask_ == 0xFFFF) {
        std::memcpy(target, source, bytes);
    } else {
        for (std::uint32_t at = 0; at < bytes; ++at) {
            if ((byte_mask_ >> (at % 16) & 1U) != 0) {
                target[at] = source[at];
            }
        }
    }
}

/// Already reported when the store was issued. After the end of an allocation nothing is overwritten.
void StoreTransfer::write_overrun(Cluster& cluster, const BoxRun& run)
{
    if (run.overrun_bytes == 0) {
        return;
    }
    GlobalProblem problem;
    if (std::byte* const behind =
            locate_global(cluster, run.global + run.global_bytes, run.overrun_bytes, Direction::write, problem)) {
        put(behind, run.linear + run.global_bytes, run.overrun_bytes);
    }
}

bool StoreTransfer::step(Cluster& cluster)
{
    if (!read_) {
        read_source(cluster);
        return false;
    }
    const std::size_t last = written_ + portion(cluster, box_.runs.size() - written_);
    for (; written_ < last; ++written_) {
        write(cluster, box_.runs[written_]);
    }
    cluster.progress();
    if (written_ < box_.runs.size()) {
        return false;
    }
    SyncPoint& point = warp_.bulk_copies.reached(sequence_, CopyGroups::Stage::complete);
    if (cluster.options().check) {
        cluster.clocks.complete_async(agent, point);
    }
    cluster.notify();
    return true;
}

std::string StoreTransfer::describe() const
{
    return fmt::format("{} of {} bytes from shared {:#x} of CTA {}, {}", what_, box_.bytes, offset_in_cta(source_),
                       warp_.cta.rank, read_ ? "source read" : "source not read yet");
}

// ---- shared to shared ----

SharedTransfer::SharedTransfer(const char* what, Warp& warp, SharedBox box, std::uint32_t source, LoadTarget target,
                               Reduce reduce)
    : BulkTransfer(what, warp, std::move(box)), source_(source), target_(target), reduce_(reduce)
{
    kind = Kind::load;
}

void SharedTransfer::watch()
{
    begin(warp_.cta, source_, false);
    begin(*target_.cta, target_.address, true);
}

bool SharedTransfer::step(Cluster& cluster)
{
    switch (stage_++) {
        case 0:
            report_exited(cluster, warp_.cta, false);
            check(cluster, warp_.cta, source_, 0, box_.runs.size(), false);
            data_.resize(box_.bytes);
            for (const BoxRun& run : box_.runs) {
                for_each_piece(warp_.cta, source_, run, [&](const std::byte* bytes, auto size, std::uint32_t done) {
                    std::memcpy(data_.data() + run.linear + done, bytes, size);
                });
            }
            return false;
        case 1:
            report_exited(cluster, *target_.cta, true);
            check(cluster, *target_.cta, target_.address, 0, box_.runs.size(), true);
            for (const BoxRun& run : box_.runs) {
                for_each_piece(*target_.cta, target_.address, run,
                               [&](std::byte* bytes, auto size, std::uint32_t done) {
                                   const std::byte* const source = data_.data() + run.linear + done;
                                   if (reduce_ != nullptr) {
                                       reduce_(bytes, source, size);
                                   } else {
                                       std::memcpy(bytes, source, size);
                                   }
                               });
            }
            cluster.progress();
            return false;
        default: break;
    }
    end(warp_.cta);
    if (target_.cta != &warp_.cta) {
        end(*target_.cta);
    }
    if (const auto found = target_.cta->mbarriers.find(offset_in_cta(target_.barrier));
        found != target_.cta->mbarriers.end() && found->second.copies != 0) {
        --found->second.copies;
    }
    async_arrive(cluster, *this, target_.barrier, 0, box_.bytes);
    return true;
}

std::string SharedTransfer::describe() const
{
    return fmt::format("{} of {} bytes to shared {:#x} of CTA {} (mbarrier {:#x})", what_, box_.bytes,
                       offset_in_cta(target_.address), target_.cta->rank, offset_in_cta(target_.barrier));
}

}  // namespace tessera::emulator
