#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "meeting.hpp"
#include "tessera/error.hpp"

namespace tessera::distributed::detail {
namespace {

using tessera::detail::raise;

std::string value_of(const char* variable)
{
    const char* const value = variable == nullptr ? nullptr : std::getenv(variable);
    return value == nullptr ? std::string() : std::string(value);
}

/// The variables of a program that starts processes.
struct Starter {
    const char* rank;
    const char* size;
    const char* local_rank;
    const char* local_size;
};

constexpr std::array starters{
    Starter{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},  // torchrun
    Starter{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Starter{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},  // MPICH, Intel MPI
    Starter{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr},
};

int number_of(const char* variable, const std::string& text, int least, std::string_view operation,
              const std::source_location& caller)
{
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least) {
        raise(ErrorCode::invalid_argument, operation, caller, fmt::format("{} is \"{}\"", variable, text),
              fmt::format("a number of at least {}", least));
    }
    return value;
}

}  // namespace

std::string MeetingPlace::describe() const
{
    return broadcast      ? std::string("the place that it broadcast")
           : file.empty() ? fmt::format("{}, port {}", host, port)
                          : fmt::format("the file {}", file.string());
}

Surroundings read_surroundings(int index, std::string_view operation, const std::source_location& caller)
{
    const Starter* found = nullptr;
    for (const Starter& starter : starters) {
        if (!value_of(starter.rank).empty() && !value_of(starter.size).empty()) {
            found = &starter;
            break;
        }
    }
    if (found == nullptr) {
        raise(ErrorCode::invalid_argument, operation, caller,
              "the environment has neither RANK and WORLD_SIZE nor the variables of Open MPI, MPICH or Slurm",
              "start the program with torchrun or mpirun, or call from_address, from_file or of_devices");
    }
    Surroundings around;
    around.rank = number_of(found->rank, value_of(found->rank), 0, operation, caller);
    around.size = number_of(found->size, value_of(found->size), 1, operation, caller);
    const std::string local = value_of(found->local_rank);
    around.local_rank = local.empty() ? around.rank : number_of(found->local_rank, local, 0, operation, caller);
    if (around.rank >= around.size) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("{} is {}, but {} is {}", found->rank, around.rank, found->size, around.size),
              "ranks are below the number of ranks");
    }
    if (const std::string file = value_of("TESSERA_BOOTSTRAP_FILE"); !file.empty()) {
        around.place.file = index == 0 ? file : fmt::format("{}.{}", file, index);
        return around;
    }
    if (const std::string host = value_of("MASTER_ADDR"); !host.empty()) {
        around.place.host = host;
        const std::string own = value_of("TESSERA_PORT");
        const std::string master = value_of("MASTER_PORT");
        if (own.empty() && master.empty()) {
            raise(ErrorCode::invalid_argument, operation, caller,
                  fmt::format("MASTER_ADDR is {}, but neither TESSERA_PORT nor MASTER_PORT is given", host),
                  "set TESSERA_PORT to a port that is free on that host");
        }
        around.place.port = index + (own.empty() ? number_of("MASTER_PORT", master, 1, operation, caller) + 1
                                                 : number_of("TESSERA_PORT", own, 1, operation, caller));
        return around;
    }
    const std::string local_size = value_of(found->local_size);
    if (around.size > 1 &&
        (local_size.empty() || number_of(found->local_size, local_size, 1, operation, caller) != around.size)) {
        raise(ErrorCode::invalid_argument, operation, caller,
              "the environment does not say where the ranks meet, and they may be on several hosts",
              "set MASTER_ADDR and TESSERA_PORT to rank 0's host and a port that is free there, or "
              "TESSERA_BOOTSTRAP_FILE "
              "to a file that all ranks reach");
    }
    // One parent has started all ranks.
    around.place.file =
        std::filesystem::temp_directory_path() / fmt::format("tessera-{}-{}-{}", getuid(), getppid(), index);
    return around;
}

}  // namespace tessera::distributed::detail
