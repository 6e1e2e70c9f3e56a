// What a cluster reports: that it hangs, with what each warp waits for, and findings with their places.

#include <fmt/format.h>

#include <chrono>

#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/finding_causes.hpp"
#include "machine/grid.hpp"
#include "machine/warp.hpp"

namespace tessera::emulator {

// ---- hangs ----

void Cluster::check_hang()
{
    hang_check_ = steps_;
    const auto now = std::chrono::steady_clock::now();
    if (steps_ - last_progress_ < grid.options.hang_limit) {
        progress_time_ = now;
        return;
    }
    // A recorded hang comes after the same step, not after the same time.
    if (choices.replays() ? choices.next_is(Choice::hang)
                          : std::chrono::duration<double>(now - progress_time_).count() > grid.options.hang_seconds) {
        choices.note(Choice::hang, steps_);
        report_hang(false, fmt::format("{} instructions had no visible effect:", steps_ - last_progress_));
    }
}

void Cluster::report_standstill(std::uint64_t instructions)
{
    choices.note(Choice::standstill, steps_);
    has_turn_ = true;  // no other cluster runs now
    report_hang(false, fmt::format("all clusters that run poll memory, and none writes what another waits for: {} "
                                   "instructions had no visible effect. The first cluster:",
                                   instructions));
}

namespace {

/// Describes a phase that has all its arrivals but can never complete.
std::string unmatched_bytes(const Wait& wait, const Mbarrier& barrier)
{
    return fmt::format(
        "phase {} of the mbarrier at {:#x} of CTA {} can never complete: no arrival is missing, but {}: the byte count "
        "of expect_tx must be the sum over all copies of this phase",
        barrier.phase, wait.object, wait.cta,
        barrier.transactions > 0
            ? fmt::format("{} more bytes are expected than the copies delivered", barrier.transactions)
            : fmt::format("the copies delivered {} bytes more than expected", -barrier.transactions));
}

}  // namespace

void Cluster::report_hang(bool deadlock, std::string text)
{
    const Warp* first = nullptr;
    const Operation* operation = nullptr;
    unsigned lines = 0;
    for (const Warp* warp : warps_) {
        if (warp->finished()) {
            continue;
        }
        for (const auto& split : warp->splits()) {
            if (split->mask == 0) {
                continue;
            }
            const Operation& at = warp->operation_at(split->pc);
            if (first == nullptr) {
                first = warp;
                operation = &at;
            }
            if (++lines > 24) {
                continue;
            }
            text += fmt::format("\n  CTA {} warp {} lanes {:#010x} at PTX line {}: {}", warp->cta.rank, warp->index,
                                split->mask, line_of(at), at.source == nullptr ? "ret" : at.source->text);
            const Wait& wait = split->wait;
            switch (wait.kind) {
                case Wait::Kind::mbarrier: {
                    text += fmt::format("\n    waits for phase {} of the mbarrier at {:#x} of CTA {}", wait.phase,
                                        wait.object, wait.cta);
                    if (wait.cta < ctas.size()) {
                        const auto& barriers = ctas[wait.cta]->mbarriers;
                        const auto found = barriers.find(offset_in_cta(wait.object));
                        if (found == barriers.end()) {
                            text += ": not initialized";
                        } else {
                            const Mbarrier& barrier = found->second;
                            text += fmt::format(
                                ": {} phases are complete, {} of {} arrivals are missing, {} expected bytes have not "
                                "arrived; {} arrived so far{}",
                                barrier.phase, barrier.pending, barrier.expected, barrier.transactions,
                                barrier.arrivals_total,
                                barrier.last_arrival.empty() ? "" : ", the last by " + barrier.last_arrival);
                            // Nothing is in flight any more: the byte counts will never match.
                            if (deadlock && barrier.pending == 0 && barrier.transactions != 0) {
                                report_at(&at, warp->cta.rank, warp->index, split->mask, FindingKind::transaction_count,
                                          unmatched_bytes(wait, barrier), false);
                            }
                        }
                    }
                    break;
                }
                case Wait::Kind::named_barrier:
                    if (wait.cta < ctas.size() && wait.object < 16) {
                        const NamedBarrier& barrier = ctas[wait.cta]->barriers[wait.object];
                        text += fmt::format("\n    waits at barrier {}: {} of {} threads have arrived", wait.object,
                                            ctas[wait.cta]->threads_arrived(barrier), barrier.expected);
                    }
                    break;
                case Wait::Kind::cluster_barrier: text += "\n    waits at the cluster's barrier"; break;
                case Wait::Kind::lanes:
                    text += fmt::format("\n    waits for lanes {:#010x} of its warp", wait.lanes);
                    break;
                case Wait::Kind::async_group: text += "\n    waits for its own asynchronous work"; break;
                case Wait::Kind::tensor_memory: text += "\n    waits for tensor memory"; break;
                case Wait::Kind::launch_control: text += "\n    waits for cluster launch control"; break;
                case Wait::Kind::none:
                    if (split->parked) {
                        text += "\n    waits for the other lanes where the branches join";
                    }
                    break;
                case Wait::Kind::registers:
                    text += fmt::format("\n    waits for {} registers per thread, more than other warps left to it",
                                        wait.object);
                    break;
            }
        }
    }
    if (lines > 24) {
        text += fmt::format("\n  ... and {} more", lines - 24);
    }
    for (const auto& pending : pending_) {
        text += fmt::format("\n  not complete: {}", pending->describe());
    }
    if (const std::uint64_t waiting = has_turn_ ? grid.waiting_clusters() : 0; !deadlock && waiting > 0) {
        text += fmt::format(
            "\n  {} of the grid's {} clusters of {} CTAs have not started: {} run at a time, and the next "
            "one starts when one ends",
            waiting, grid.clusters.count(), grid.request.cluster.count(), grid.next.size());
        if (!grid.fits) {
            text +=
                ". A GPU starts them in the same way: if CTAs wait for later ones, launch no more than are resident "
                "(cudaOccupancyMaxActiveBlocksPerMultiprocessor), or let them wait for earlier ones only";
        }
    }
    report_at(operation, first == nullptr ? 0 : first->cta.rank, first == nullptr ? 0 : first->index, 0,
              FindingKind::deadlock, text, true);
    throw Fault(error_launch_timeout, text);
}

// ---- reports ----

void Cluster::report_at(const Operation* operation, std::uint32_t rank, std::uint32_t warp, LaneMask lanes,
                        FindingKind kind, FindingText text, bool error, Report::Known* known)
{
    Finding finding;
    finding.kind = kind;
    finding.error = error;
    finding.message = std::move(text.message);
    finding.cause = std::move(text.cause);
    finding.kernel = grid.kernel.name;
    finding.cta = rank < ctas.size() ? ctas[rank]->id : Dim3{0, 0, 0};
    finding.warp = warp;
    finding.lanes = lanes;
    if (operation != nullptr && operation->source != nullptr) {
        finding.ptx_line = operation->source->location.line;
        finding.ptx_text = operation->source->text;
        finding.frames = grid.program.frames_of(operation->source->location);
    }
    if (finding.cause.empty() && (kind == FindingKind::shared_race || kind == FindingKind::same_value_race)) {
        finding.cause = race_cause(grid.program, finding);
    }
    const std::string message = finding.message;
    const auto complete = [&](Finding& first) {
        first.message = grid.program.with_places(first.message);
        first.message += kind == FindingKind::trap ? trap_reason(first) : std::string();
        if (grid.request.launched_by) {
            first.host = grid.request.launched_by();
        }
    };
    grid.report.add(std::move(finding), complete, known);
    if (grid.options.strict && !error) {
        throw Fault(error_launch_failure, message);
    }
}

void Cluster::report(const AsyncOperation& operation, FindingKind kind, FindingText text, bool error)
{
    report_at(operation.operation, operation.cta_rank, operation.warp, operation.lanes, kind, std::move(text), error);
}

void Cluster::report(const AsyncOperation& operation, const ShadowFinding& finding)
{
    const RepeatedFindings::Key key{operation.operation, finding.other_line, operation.cta_rank, finding.kind};
    // With Options::strict, each finding ends the launch with its own message.
    if (!grid.options.strict && repeated.count(key, operation.lanes)) {
        return;
    }
    Report::Known known;
    report_at(operation.operation, operation.cta_rank, operation.warp, operation.lanes, finding.kind, finding.message,
              false, &known);
    repeated.add(key, known);
}

bool Cluster::is_known(const AsyncOperation& operation, FindingKind kind, std::uint64_t detail) const
{
    return !grid.options.strict && repeated.contains({operation.operation, detail, operation.cta_rank, kind});
}

void Cluster::fault(const AsyncOperation& operation, FindingKind kind, int code, std::string message)
{
    report(operation, kind, message, true);
    throw Fault(code, message);
}

}  // namespace tessera::emulator
