// Links tessera::distributed, which brings what it needs. Without NCCL or a GPU, making a communicator is an error of its own.
#include <tessera/distributed.hpp>

#include <cstdio>
#include <vector>

int main()
{
    using namespace tessera::distributed;
    const Share share = Share::of(11, 3, 1);
    std::printf("rank 1 of 3 has %lld of 11 rows\n", static_cast<long long>(share.size));
    try {
        Communicator::of_devices(std::vector<int>{0, 0});
    } catch (const tessera::Error& error) {
        return error.code() == tessera::ErrorCode::invalid_argument ? 0 : 1;
    }
    return 1;
}
