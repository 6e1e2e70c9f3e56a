// How processes meet, and hear of each other's end. Without GPUs and NCCL: ranks are threads that meet over TCP.

#include "meeting.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "hub.hpp"
#include "support/errors.hpp"

using namespace tessera;
using namespace tessera::distributed;
using namespace tessera::distributed::detail;
using namespace std::chrono_literals;

namespace {

const std::source_location here = std::source_location::current();

std::filesystem::path fresh_file()
{
    static int number = 0;
    return std::filesystem::temp_directory_path() /
           ("tessera-meeting-" + std::to_string(getpid()) + "-" + std::to_string(number++));
}

NcclId some_id()
{
    NcclId id;
    for (std::size_t i = 0; i < id.bytes.size(); ++i) {
        id.bytes[i] = static_cast<char>(i * 7);
    }
    return id;
}

std::optional<NcclId> id_of(int rank) { return rank == 0 ? std::optional(some_id()) : std::nullopt; }

template <class Condition>
bool comes_true(Condition condition)
{
    for (int i = 0; i < 500 && !condition(); ++i) {
        std::this_thread::sleep_for(10ms);
    }
    return condition();
}

std::vector<Met> meet_all(const MeetingPlace& place, int size)
{
    std::vector<Met> all(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            all[static_cast<std::size_t>(rank)] = meet(place, {rank, size, 5s}, id_of(rank), "test", here);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    return all;
}

/// Sets variables, and unsets all others that starters set.
void set_environment(std::initializer_list<std::pair<const char*, const char*>> variables)
{
    for (const char* const name :
         {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TESSERA_PORT",
          "TESSERA_BOOTSTRAP_FILE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
          "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}) {
        unsetenv(name);
    }
    for (const auto& [name, value] : variables) {
        setenv(name, value, 1);
    }
}

std::string refusal_of_environment()
{
    const auto error = test::error_of([] { read_surroundings(0, "test", here); });
    return error ? std::string(error->message()) : "no error";
}

}  // namespace

TEST_CASE("ranks meet by a file, all have rank 0's id, and the file is gone in the end")
{
    const std::filesystem::path file = fresh_file();
    {
        const std::vector<Met> all = meet_all({.file = file}, 4);
        CHECK(std::filesystem::exists(file));
        for (const Met& met : all) {
            CHECK(met.id.bytes == some_id().bytes);
        }
        for (const Met& met : all) {
            met.peers->leave();
        }
    }
    CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("a file of an earlier run is no obstacle")
{
    const std::filesystem::path file = fresh_file();
    std::ofstream(file) << "localhost 1 0123\n";
    const std::vector<Met> all = meet_all({.file = file}, 2);
    CHECK(all[1].id.bytes == some_id().bytes);
}

TEST_CASE("a rank tells how far it is, and that it failed")
{
    const std::vector<Met> all = meet_all({.file = fresh_file()}, 3);
    all[2].peers->tell({.enqueued = 7, .is_waiting = true});
    CHECK(comes_true([&] {
        const auto statuses = all[1].peers->statuses(1s);
        return statuses.size() == 3 && statuses[2].enqueued == 7 && statuses[2].is_waiting;
    }));
    CHECK_FALSE(all[0].peers->failure());
    all[1].peers->tell_failure(1, "no more memory");
    for (const Met& met : all) {
        REQUIRE(comes_true([&] { return met.peers->failure().has_value(); }));
        CHECK(met.peers->failure()->rank == 1);
        CHECK(met.peers->failure()->reason == "no more memory");
    }
}

TEST_CASE("a process that dies is named to all others")
{
    const std::filesystem::path file = fresh_file();
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const Met met = meet({.file = file}, {2, 3, 5s}, std::nullopt, "test", here);
        std::this_thread::sleep_for(100ms);
        _exit(met.peers == nullptr ? 1 : 0);  // without a word
    }
    std::vector<Met> all(2);
    std::thread first([&] { all[0] = meet({.file = file}, {0, 3, 5s}, id_of(0), "test", here); });
    all[1] = meet({.file = file}, {1, 3, 5s}, std::nullopt, "test", here);
    first.join();
    for (const Met& met : all) {
        REQUIRE(comes_true([&] { return met.peers->failure().has_value(); }));
        CHECK(met.peers->failure()->rank == 2);
        CHECK(met.peers->failure()->reason == "its process ended without a word");
    }
    waitpid(child, nullptr, 0);
}

TEST_CASE("rank 0's death is noticed, its regular end is none")
{
    for (const bool leaves : {false, true}) {
        const std::filesystem::path file = fresh_file();
        const pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            {
                const Met met = meet({.file = file}, {0, 2, 5s}, id_of(0), "test", here);
                std::this_thread::sleep_for(300ms);
                if (!leaves) {
                    _exit(0);
                }
                met.peers->leave();
            }
            _exit(0);
        }
        const Met met = meet({.file = file}, {1, 2, 5s}, std::nullopt, "test", here);
        waitpid(child, nullptr, 0);
        if (leaves) {
            std::this_thread::sleep_for(100ms);
            CHECK_FALSE(met.peers->failure());
        } else {
            REQUIRE(comes_true([&] { return met.peers->failure().has_value(); }));
            CHECK(met.peers->failure()->rank == 0);
        }
        std::filesystem::remove(file);
    }
}

TEST_CASE("two processes of one rank, or other counts of ranks, are refused with the numbers")
{
    Socket listening = Socket::listen(0, true);
    const int port = listening.port();
    const Hub hub(std::move(listening), 2, "", some_id());
    const MeetingPlace place{.host = "localhost", .port = port, .file = {}};
    const Met first = meet(place, {1, 2, 5s}, std::nullopt, "test", here);
    const auto twice = test::error_of([&] { meet(place, {1, 2, 5s}, std::nullopt, "test", here); });
    REQUIRE(twice);
    CHECK(std::string(twice->message()).find("two processes are rank 1 of 2") != std::string::npos);
    const auto count = test::error_of([&] { meet(place, {1, 3, 5s}, std::nullopt, "test", here); });
    REQUIRE(count);
    CHECK(std::string(count->message()).find("rank 1 counts 3 ranks, but rank 0 counts 2") != std::string::npos);
    first.peers->leave();
}

TEST_CASE("a rank 0 that does not come is an error in time")
{
    const auto start = std::chrono::steady_clock::now();
    const auto error = test::error_of([] { meet({.file = fresh_file()}, {1, 2, 300ms}, std::nullopt, "test", here); });
    REQUIRE(error);
    CHECK(std::string(error->message()).find("rank 1 of 2 did not find rank 0 at the file") != std::string::npos);
    CHECK(std::chrono::steady_clock::now() - start < 5s);
}

TEST_CASE("the environment of torchrun, Open MPI and Slurm")
{
    set_environment(
        {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}});
    Surroundings around = read_surroundings(0, "test", here);
    CHECK(around.rank == 3);
    CHECK(around.size == 8);
    CHECK(around.local_rank == 1);
    CHECK(around.place.host == "node0");
    CHECK(around.place.port == 29501);
    CHECK(read_surroundings(2, "test", here).place.port == 29503);

    set_environment({{"OMPI_COMM_WORLD_RANK", "1"},
                     {"OMPI_COMM_WORLD_SIZE", "2"},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
    around = read_surroundings(0, "test", here);
    CHECK(around.rank == 1);
    CHECK_FALSE(around.place.file.empty());

    set_environment({{"SLURM_PROCID", "5"},
                     {"SLURM_NTASKS", "8"},
                     {"SLURM_LOCALID", "1"},
                     {"TESSERA_BOOTSTRAP_FILE", "/shared/x"}});
    around = read_surroundings(1, "test", here);
    CHECK(around.rank == 5);
    CHECK(around.place.file == "/shared/x.1");
}

TEST_CASE("an environment that says too little or nonsense")
{
    set_environment({});
    CHECK(refusal_of_environment() ==
          "the environment has neither RANK and WORLD_SIZE nor the variables of Open MPI, MPICH or Slurm");
    set_environment({{"RANK", "2"}, {"WORLD_SIZE", "2"}});
    CHECK(refusal_of_environment() == "RANK is 2, but WORLD_SIZE is 2");
    set_environment({{"RANK", "first"}, {"WORLD_SIZE", "2"}});
    CHECK(refusal_of_environment() == "RANK is \"first\"");
    set_environment({{"RANK", "0"}, {"WORLD_SIZE", "2"}});
    CHECK(refusal_of_environment() ==
          "the environment does not say where the ranks meet, and they may be on several hosts");
    set_environment({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node0"}});
    CHECK(refusal_of_environment() == "MASTER_ADDR is node0, but neither TESSERA_PORT nor MASTER_PORT is given");
    set_environment({});
}
