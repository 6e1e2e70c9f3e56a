// NCCL that is missing, too old or no NCCL at all. Each process looks for it once, so that the argument says what is expected.

#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "tessera/distributed.hpp"

/// Usage: distributed_library_test TEXT. Exits with 0 if making a communicator throws an error with TEXT.
int main(int argc, char** argv)
{
    if (argc != 2) {
        return 2;
    }
    try {
        std::vector<int> devices(static_cast<std::size_t>(tessera::Device::count()));
        std::iota(devices.begin(), devices.end(), 0);
        const auto all = tessera::distributed::Communicator::of_devices(devices);
        std::printf("%s\n", all.front().describe().c_str());
        return all.front().describe().find(argv[1]) == std::string::npos ? 1 : 0;
    } catch (const tessera::Error& error) {
        std::printf("%s\n", error.what());
        return std::string(error.what()).find(argv[1]) == std::string::npos ? 1 : 0;
    }
}
