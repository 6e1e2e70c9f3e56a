#include "fake_communicator.hpp"

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "tessera/element.hpp"

using namespace fake_nccl;
using namespace std::chrono_literals;

namespace {

void check(cudaError_t status)
{
    if (status != cudaSuccess) {
        throw std::runtime_error(cudaGetErrorString(status));
    }
}

template <class T>
void add(std::vector<float>& sums, const std::byte* from)
{
    for (std::size_t i = 0; i < sums.size(); ++i) {
        T value{};
        std::memcpy(&value, from + i * sizeof(T), sizeof(T));
        sums[i] += float(value);
    }
}

template <class T>
void store(const std::vector<float>& sums, std::byte* to)
{
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const T value(sums[i]);
        std::memcpy(to + i * sizeof(T), &value, sizeof(T));
    }
}

}  // namespace

ncclComm::ncclComm(const std::string& path, int size_of_group, int own_rank, const NcclConfig& given)
    : region(path), size(size_of_group), rank(own_rank), config(given)
{
    check(cudaGetDevice(&device));
}

ncclComm::~ncclComm()
{
    aborted = true;  // what still waits, for a peer that will not come, ends
    join_thread();
    if (++region.shared().left == size) {
        region.remove_file();
    }
}

void ncclComm::join_thread()
{
    if (thread.joinable()) {
        thread.join();
    }
}

NcclResult ncclComm::begin(std::function<NcclResult()> work)
{
    join_thread();
    if (config.blocking != 0) {
        state = work();
        return state;
    }
    state = NcclResult::in_progress;
    thread = std::thread([this, work = std::move(work)] {
        cudaSetDevice(device);
        try {
            state = work();
        } catch (const std::exception&) {
            state = NcclResult::unhandled_cuda_error;
        }
    });
    return NcclResult::in_progress;
}

bool ncclComm::wait(const std::function<bool()>& done) const
{
    while (!done()) {
        if (aborted) {
            return false;
        }
        std::this_thread::sleep_for(50us);
    }
    return true;
}

void ncclComm::on_host(cudaStream_t stream, std::function<void()> work)
{
    std::function<void()>* kept = nullptr;
    {
        const std::scoped_lock lock(mutex);
        kept = &host_work.emplace_back(std::move(work));
    }
    check(cudaLaunchHostFunc(stream, [](void* function) { (*static_cast<std::function<void()>*>(function))(); }, kept));
}

void ncclComm::enqueue_send(const std::byte* from, std::size_t bytes, int to, cudaStream_t stream)
{
    Channel& channel = region.shared().channels[rank][to];
    on_host(stream, [this, &channel] { wait([&] { return channel.written == channel.read; }); });
    check(cudaMemcpyAsync(region.slot(rank, to), from, bytes, cudaMemcpyDeviceToHost, stream));
    on_host(stream, [&channel] { ++channel.written; });
}

void ncclComm::enqueue_receive(std::byte* to, std::size_t bytes, int from, cudaStream_t stream)
{
    Channel& channel = region.shared().channels[from][rank];
    on_host(stream, [this, &channel] { wait([&] { return channel.written > channel.read; }); });
    check(cudaMemcpyAsync(to, region.slot(from, rank), bytes, cudaMemcpyHostToDevice, stream));
    on_host(stream, [&channel] { ++channel.read; });
}

bool ncclComm::is_in_one_process() const
{
    for (int other = 0; other < size; ++other) {
        if (region.shared().process[other] != getpid()) {
            return false;
        }
    }
    return true;
}

void ncclComm::enqueue_copies(const std::byte* from, std::size_t bytes, std::uint64_t window, std::size_t offset,
                              cudaStream_t stream)
{
    // Numbers are counted when the work runs: a graph runs it again.
    const auto meet = [this](std::atomic<std::uint64_t>* arrived) {
        const std::uint64_t number = ++arrived[rank];
        wait([&] {
            for (int other = 0; other < size; ++other) {
                if (arrived[other] < number) {
                    return false;
                }
            }
            return true;
        });
    };
    on_host(stream, [this, meet] { meet(region.shared().ready); });
    for (int other = 0; other < size; ++other) {
        std::byte* const to = region.shared().window_begin[window % most_windows][other] + offset;
        if (to != from) {
            check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
        }
    }
    on_host(stream, [this, meet] { meet(region.shared().complete); });
}

void ncclComm::enqueue_sum(std::byte* to, std::size_t bytes, NcclType type, cudaStream_t stream)
{
    on_host(stream, [this, bytes, type] {
        std::vector<float> sums(bytes / (type == NcclType::f32 ? 4 : 2));
        for (int from = 0; from < size; ++from) {
            Channel& channel = region.shared().channels[from][rank];
            if (!wait([&] { return channel.written > channel.read; })) {
                return;
            }
            const std::byte* const slot = region.slot(from, rank);
            type == NcclType::f32   ? add<float>(sums, slot)
            : type == NcclType::f16 ? add<tessera::f16>(sums, slot)
                                    : add<tessera::bf16>(sums, slot);
            ++channel.read;
        }
        std::byte* const result = region.result(rank);
        type == NcclType::f32   ? store<float>(sums, result)
        : type == NcclType::f16 ? store<tessera::f16>(sums, result)
                                : store<tessera::bf16>(sums, result);
    });
    check(cudaMemcpyAsync(to, region.result(rank), bytes, cudaMemcpyHostToDevice, stream));
}
