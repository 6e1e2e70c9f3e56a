// One rank of several processes, for processes.sh. Rank 1 does what the argument says; the others report what they hear of it.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tessera/distributed.hpp"
#include "tessera/tessera.hpp"

using namespace tessera;
using namespace tessera::distributed;

namespace {

/// Multiplies again and again, until `end` says so before a launch.
template <class End>
void multiply(const Communicator& communicator, End end)
{
    const Stream stream(communicator.device());
    const std::int64_t rows = Share::of(64, communicator.size(), communicator.rank()).size;
    const std::int64_t columns = Share::of(32, communicator.size(), communicator.rank()).size;
    DeviceBuffer<bf16> a(stream, rows * 16);
    DeviceBuffer<bf16> b(stream, 16 * columns);
    DeviceBuffer<bf16> d(stream, 64 * columns);
    a.fill(stream, bf16(1.0F));
    b.fill(stream, bf16(2.0F));
    const auto product =
        ShardedGemm::prepare(communicator, ShardedMatrix::by_rows(communicator, 64, 16, a.matrix(rows, 16)),
                             ShardedMatrix::by_columns(communicator, 16, 32, b.matrix(16, columns)),
                             ShardedMatrix::by_columns(communicator, 64, 32, d.matrix(64, columns)), {}, {.chunks = 2});
    for (int i = 0; i < 5; ++i) {
        end(i);
        product.launch(stream);
        communicator.synchronize(stream);
        for (const bf16 value : d.to_vector()) {
            if (float(value) != 32.0F) {
                throw std::runtime_error("a wrong result");
            }
        }
    }
}

}  // namespace

/// Usage: distributed_process works|dies|hangs|throws. Exits with 0 after five right products, and with 3 after an error that names
/// rank 1.
int main(int argc, char** argv)
{
    const char* const what = argc == 2 ? argv[1] : "works";
    int rank = -1;
    try {
        const Communicator communicator = Communicator::from_environment({.timeout = std::chrono::milliseconds(3000)});
        rank = communicator.rank();
        multiply(communicator, [&](int round) {
            if (rank != 1 || round != 2 || std::strcmp(what, "works") == 0) {
                return;
            }
            if (std::strcmp(what, "dies") == 0) {
                std::raise(SIGKILL);
            }
            if (std::strcmp(what, "throws") == 0) {
                throw std::runtime_error("rank 1 has enough");
            }
            std::this_thread::sleep_for(std::chrono::seconds(6));
        });
        return 0;
    } catch (const RankError& error) {
        std::printf("rank %d: %s\n", rank, error.what());
        std::fflush(stdout);
        std::_Exit(error.rank() == 1 ? 3 : 1);  // what still waits on the device for the other rank does not end
    } catch (const std::exception& error) {
        std::printf("rank %d: %s\n", rank, error.what());
        return 4;
    }
}
