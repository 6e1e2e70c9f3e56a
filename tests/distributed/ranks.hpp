#pragma once

// Ranks as threads of one process.

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fake_nccl.hpp"
#include "tessera/distributed.hpp"
#include "tessera/tessera.hpp"

namespace tessera::test {

/// What each rank's work threw; empty texts for those that did not.
struct RankErrors {
    std::vector<std::string> texts;
    std::vector<int> culprits;  // of RankError; -2 for other errors and none

    bool none() const
    {
        for (const std::string& text : texts) {
            if (!text.empty()) {
                return false;
            }
        }
        return true;
    }
};

inline std::vector<distributed::Communicator> communicators_of(int ranks, distributed::CommunicatorOptions options = {})
{
    std::vector<int> devices(static_cast<std::size_t>(ranks));
    std::iota(devices.begin(), devices.end(), 0);
    return distributed::Communicator::of_devices(devices, options);
}

/// Runs `work` in a thread for each communicator, which the thread owns: it ends with the work, also by an exception.
inline RankErrors run_ranks(std::vector<distributed::Communicator> communicators,
                            const std::function<void(const distributed::Communicator&)>& work)
{
    RankErrors errors{std::vector<std::string>(communicators.size()), std::vector<int>(communicators.size(), -2)};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < communicators.size(); ++i) {
        threads.emplace_back([&, i, mine = std::move(communicators[i])]() mutable {
            try {
                const distributed::Communicator own = std::move(mine);
                work(own);
            } catch (const distributed::RankError& error) {
                errors.texts[i] = error.what();
                errors.culprits[i] = error.rank();
            } catch (const std::exception& error) {
                errors.texts[i] = error.what();
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    return errors;
}

/// The stand-in that is loaded.
class FakeNccl {
public:
    static FakeNcclStatistics statistics()
    {
        FakeNcclStatistics all{};
        reinterpret_cast<FakeNcclStatisticsOf>(symbol("fakeNcclStatistics"))(&all);
        return all;
    }
    static void fail(int rank, int call, int result)
    {
        reinterpret_cast<FakeNcclFail>(symbol("fakeNcclFail"))(rank, call, result);
    }

private:
    static void* symbol(const char* name)
    {
        const char* const folder = std::getenv("TESSERA_NCCL");
        void* const library = dlopen((std::filesystem::path(folder == nullptr ? "" : folder) / "libnccl.so.2").c_str(),
                                     RTLD_NOW | RTLD_LOCAL);
        void* const found = library == nullptr ? nullptr : dlsym(library, name);
        if (found == nullptr) {
            throw std::runtime_error("TESSERA_NCCL names no stand-in for NCCL");
        }
        return found;
    }
};

}  // namespace tessera::test
