// A stand-in for NCCL: the entry points that the SDK uses. See fake_nccl.hpp.

#include "fake_nccl.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fake_communicator.hpp"

using namespace fake_nccl;
using tessera::distributed::detail::NcclId;
using tessera::distributed::detail::NcclOperation;

namespace {

std::atomic<std::int64_t> communicators{0};
std::atomic<std::int64_t> windows{0};
std::atomic<std::int64_t> allocations{0};
std::atomic<std::int64_t> calls{0};
std::atomic<std::int64_t> copies{0};
std::atomic<std::int64_t> splits{0};
std::atomic<std::int64_t> aborts{0};
std::atomic<std::int64_t> most_ctas{0};

struct PlannedFailure {
    std::atomic<int> rank{-1};
    std::atomic<int> calls_left{0};
    std::atomic<int> result{0};

    PlannedFailure() noexcept
    {
        int of_rank = 0;
        int call = 0;
        int code = 0;
        const char* const text = std::getenv("FAKE_NCCL_FAIL");
        if (text != nullptr && std::sscanf(text, "%d:%d:%d", &of_rank, &call, &code) == 3) {
            set(of_rank, call, code);
        }
    }
    void set(int of_rank, int call, int code)
    {
        calls_left = call;
        result = code;
        rank = of_rank;
    }
    /// Returns the result that a call of this rank shall have instead of being made.
    std::optional<NcclResult> of(int of_rank)
    {
        if (rank != of_rank || --calls_left > 0) {
            return std::nullopt;
        }
        rank = -1;
        return static_cast<NcclResult>(result.load());
    }
};
PlannedFailure planned;

/// A call of communication until its group ends.
struct Call {
    ncclComm* comm;
    std::size_t bytes;  // of the longest message
    std::function<void(std::size_t begin, std::size_t bytes)> send;
    std::function<void(std::size_t begin, std::size_t bytes)> receive;
};
thread_local std::vector<Call> group;
thread_local int depth = 0;

NcclResult end_group()
{
    std::vector<Call> all = std::move(group);
    group.clear();
    if (all.empty()) {
        return NcclResult::success;
    }
    ncclComm* const comm = all.front().comm;
    return comm->begin([all = std::move(all)] {
        std::size_t longest = 0;
        for (const Call& call : all) {
            longest = std::max(longest, call.bytes);
        }
        // Parts of all messages in turn: a channel has room for one.
        for (std::size_t begin = 0; begin < longest; begin += slot_bytes) {
            for (const bool sends : {true, false}) {
                for (const Call& call : all) {
                    const auto& part = sends ? call.send : call.receive;
                    if (part && begin < call.bytes) {
                        part(begin, std::min(slot_bytes, call.bytes - begin));
                    }
                }
            }
        }
        return NcclResult::success;
    });
}

NcclResult add(Call call)
{
    ++calls;
    if (const auto result = planned.of(call.comm->rank)) {
        return *result;
    }
    group.push_back(std::move(call));
    return depth > 0 ? NcclResult::success : end_group();
}

std::size_t size_of(NcclType type) { return type == NcclType::f32 ? 4 : type == NcclType::uint8 ? 1 : 2; }

const ncclComm::Window* window_of(const ncclComm& comm, const void* data, std::size_t bytes)
{
    const auto* const begin = static_cast<const std::byte*>(data);
    const auto found = std::find_if(comm.registered.begin(), comm.registered.end(), [&](const auto& window) {
        return begin >= window->begin && begin + bytes <= window->begin + window->bytes;
    });
    return found == comm.registered.end() ? nullptr : found->get();
}

}  // namespace

extern "C" {

void fakeNcclStatistics(FakeNcclStatistics* to)
{
    *to = {communicators, windows, allocations, calls, copies, splits, aborts, most_ctas};
}
void fakeNcclFail(int rank, int call, int result) { planned.set(rank, call, result); }

NcclResult ncclGetVersion(int* version)
{
    const char* const given = std::getenv("FAKE_NCCL_VERSION");
    *version = given == nullptr ? 22809 : std::atoi(given);
    return NcclResult::success;
}

NcclResult ncclGetUniqueId(NcclId* id)
{
    static std::atomic<int> number{0};
    std::snprintf(id->bytes.data(), id->bytes.size(), "/tmp/fake-nccl-%d-%d", static_cast<int>(getpid()), number++);
    return NcclResult::success;
}

NcclResult ncclCommInitRankConfig(ncclComm** made, int size, NcclId id, int rank, NcclConfig* config)
{
    if (size < 1 || size > most_ranks || rank < 0 || rank >= size || config->magic != 0xcafebeef) {
        return NcclResult::invalid_argument;
    }
    if (const auto result = planned.of(rank)) {
        return *result;
    }
    auto* const comm = new ncclComm(id.bytes.data(), size, rank, *config);
    ++communicators;
    most_ctas = config->max_ctas == NcclConfig::undefined ? 0 : config->max_ctas;
    *made = comm;
    return comm->begin([comm] {
        ++comm->region.shared().joined;
        comm->wait([comm] { return comm->region.shared().joined >= comm->size; });
        return NcclResult::success;
    });
}

NcclResult ncclCommSplit(ncclComm* comm, int color, int key, ncclComm** made, NcclConfig* config)
{
    if (comm->splits == most_splits || config != nullptr) {
        return NcclResult::invalid_argument;
    }
    if (const auto result = planned.of(comm->rank)) {
        return *result;
    }
    *made = nullptr;
    const int number = comm->splits++;
    return comm->begin([=] {
        Split& split = comm->region.shared().splits[number];
        split.color[comm->rank] = color;
        split.key[comm->rank] = key;
        ++split.arrived;
        if (!comm->wait([&] { return split.arrived == comm->size; })) {
            return NcclResult::internal_error;
        }
        int size = 0;
        int rank = 0;
        for (int other = 0; other < comm->size; ++other) {
            const bool is_of_it = split.color[other] == color;
            size += is_of_it ? 1 : 0;
            rank += is_of_it && split.key[other] < key ? 1 : 0;
        }
        auto* const branch = new ncclComm(
            comm->region.path() + "-" + std::to_string(number) + "-" + std::to_string(color), size, rank, comm->config);
        ++communicators;
        ++splits;
        ++branch->region.shared().joined;
        comm->wait([branch] { return branch->region.shared().joined >= branch->size; });
        *made = branch;
        return NcclResult::success;
    });
}

NcclResult ncclCommFinalize(ncclComm* comm)
{
    return comm->begin([] {
        cudaDeviceSynchronize();  // what was enqueued is done then
        return NcclResult::success;
    });
}
NcclResult ncclCommDestroy(ncclComm* comm)
{
    delete comm;
    --communicators;
    return NcclResult::success;
}
NcclResult ncclCommAbort(ncclComm* comm)
{
    ++aborts;
    comm->aborted = true;
    cudaDeviceSynchronize();  // its host functions have ended then
    return ncclCommDestroy(comm);
}
const char* ncclGetErrorString(NcclResult result)
{
    return result == NcclResult::success        ? "no error"
           : result == NcclResult::system_error ? "unhandled system error"
           : result == NcclResult::remote_error ? "remote process exited or there was a network error"
           : result == NcclResult::in_progress  ? "NCCL operation in progress"
                                                : "internal error";
}
const char* ncclGetLastError(ncclComm* /*comm*/) { return ""; }
NcclResult ncclCommGetAsyncError(ncclComm* comm, NcclResult* state)
{
    *state = comm->state;
    return NcclResult::success;
}
NcclResult ncclCommCount(const ncclComm* comm, int* count)
{
    *count = comm->size;
    return NcclResult::success;
}
NcclResult ncclCommCuDevice(const ncclComm* comm, int* device)
{
    *device = comm->device;
    return NcclResult::success;
}
NcclResult ncclCommUserRank(const ncclComm* comm, int* rank)
{
    *rank = comm->rank;
    return NcclResult::success;
}

NcclResult ncclGroupStart()
{
    ++depth;
    return NcclResult::success;
}
NcclResult ncclGroupEnd() { return --depth > 0 ? NcclResult::success : end_group(); }

NcclResult ncclSend(const void* from, std::size_t count, NcclType type, int to, ncclComm* comm, cudaStream_t stream)
{
    const auto* const data = static_cast<const std::byte*>(from);
    return add({comm,
                count * size_of(type),
                [=](std::size_t begin, std::size_t bytes) { comm->enqueue_send(data + begin, bytes, to, stream); },
                {}});
}
NcclResult ncclRecv(void* to, std::size_t count, NcclType type, int from, ncclComm* comm, cudaStream_t stream)
{
    auto* const data = static_cast<std::byte*>(to);
    return add({comm, count * size_of(type), {}, [=](std::size_t begin, std::size_t bytes) {
                    comm->enqueue_receive(data + begin, bytes, from, stream);
                }});
}

NcclResult ncclAllGather(const void* from, void* to, std::size_t count, NcclType type, ncclComm* comm,
                         cudaStream_t stream)
{
    const std::size_t own = count * size_of(type);
    const auto* const source = static_cast<const std::byte*>(from);
    auto* const target = static_cast<std::byte*>(to);
    const ncclComm::Window* const window = window_of(*comm, to, own * static_cast<std::size_t>(comm->size));
    const bool by_copies = comm->config.cta_policy == 2 && window_of(*comm, from, own) != nullptr && window != nullptr;
    copies += by_copies ? 1 : 0;
    if (by_copies && comm->is_in_one_process()) {
        std::byte* const part = target + static_cast<std::size_t>(comm->rank) * own;
        const auto offset = static_cast<std::size_t>(part - window->begin);
        return add({comm,
                    1,
                    [=, number = window->number](std::size_t /*begin*/, std::size_t /*bytes*/) {
                        comm->enqueue_copies(source, own, number, offset, stream);
                    },
                    {}});
    }
    return add({comm, own,
                [=](std::size_t begin, std::size_t bytes) {
                    for (int other = 0; other < comm->size; ++other) {
                        if (other != comm->rank) {
                            comm->enqueue_send(source + begin, bytes, other, stream);
                        }
                    }
                    std::byte* const mine = target + static_cast<std::size_t>(comm->rank) * own;
                    if (mine != source) {
                        cudaMemcpyAsync(mine + begin, source + begin, bytes, cudaMemcpyDeviceToDevice, stream);
                    }
                },
                [=](std::size_t begin, std::size_t bytes) {
                    for (int other = 0; other < comm->size; ++other) {
                        if (other != comm->rank) {
                            comm->enqueue_receive(target + static_cast<std::size_t>(other) * own + begin, bytes, other,
                                                  stream);
                        }
                    }
                }});
}

NcclResult ncclReduceScatter(const void* from, void* to, std::size_t count, NcclType type, NcclOperation /*operation*/,
                             ncclComm* comm, cudaStream_t stream)
{
    const std::size_t own = count * size_of(type);
    const auto* const source = static_cast<const std::byte*>(from);
    auto* const target = static_cast<std::byte*>(to);
    return add({comm, own,
                [=](std::size_t begin, std::size_t bytes) {
                    for (int other = 0; other < comm->size; ++other) {
                        comm->enqueue_send(source + static_cast<std::size_t>(other) * own + begin, bytes, other,
                                           stream);
                    }
                },
                [=](std::size_t begin, std::size_t bytes) { comm->enqueue_sum(target + begin, bytes, type, stream); }});
}

NcclResult ncclAllReduce(const void* from, void* to, std::size_t count, NcclType type, NcclOperation /*operation*/,
                         ncclComm* comm, cudaStream_t stream)
{
    const auto* const source = static_cast<const std::byte*>(from);
    auto* const target = static_cast<std::byte*>(to);
    return add({comm, count * size_of(type),
                [=](std::size_t begin, std::size_t bytes) {
                    for (int other = 0; other < comm->size; ++other) {
                        comm->enqueue_send(source + begin, bytes, other, stream);
                    }
                },
                [=](std::size_t begin, std::size_t bytes) { comm->enqueue_sum(target + begin, bytes, type, stream); }});
}

NcclResult ncclMemAlloc(void** memory, std::size_t bytes)
{
    if (cudaMalloc(memory, bytes) != cudaSuccess) {
        return NcclResult::unhandled_cuda_error;
    }
    ++allocations;
    return NcclResult::success;
}
NcclResult ncclMemFree(void* memory)
{
    --allocations;
    return cudaFree(memory) == cudaSuccess ? NcclResult::success : NcclResult::unhandled_cuda_error;
}
NcclResult ncclCommWindowRegister(ncclComm* comm, void* memory, std::size_t bytes, void** window, int /*flags*/)
{
    const auto number = ++comm->windows;
    // As NCCL 2.28 does, it returns success although the work goes on.
    comm->begin([=] {
        comm->region.shared().process[comm->rank] = getpid();
        comm->region.shared().window_begin[number % most_windows][comm->rank] = static_cast<std::byte*>(memory);
        comm->region.shared().windows[comm->rank] = number;
        comm->wait([=] {
            for (int other = 0; other < comm->size; ++other) {
                if (comm->region.shared().windows[other] < number) {
                    return false;
                }
            }
            return true;
        });
        if (std::getenv("FAKE_NCCL_NO_WINDOWS") == nullptr) {
            ++windows;
            comm->registered.push_back(
                std::make_unique<ncclComm::Window>(static_cast<const std::byte*>(memory), bytes, number));
            *window = comm->registered.back().get();
        }
        return NcclResult::success;
    });
    return NcclResult::success;
}
NcclResult ncclCommWindowDeregister(ncclComm* comm, void* window)
{
    comm->join_thread();
    std::erase_if(comm->registered, [window](const auto& each) { return each.get() == window; });
    --windows;
    return NcclResult::success;
}

}  // extern "C"
