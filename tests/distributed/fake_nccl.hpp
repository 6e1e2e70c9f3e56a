#pragma once

// Control of the stand-in for NCCL, whose entry points tests load as `libnccl.so.2`. It moves the data through memory that processes
// share, in the order of the streams, also on the emulated device. A program that was started with these variables:
//
//   FAKE_NCCL_VERSION=21805       tells another version
//   FAKE_NCCL_NO_WINDOWS=1        has no memory that copy engines reach, as where GPUs do not see each other
//   FAKE_NCCL_FAIL=RANK:CALL:CODE the call of that number on that rank returns this result

#include <cstdint>

struct FakeNcclStatistics {
    std::int64_t communicators;  // alive
    std::int64_t windows;        // alive
    std::int64_t allocations;    // alive
    std::int64_t calls;          // of communication, ever
    std::int64_t copies;         // of these, such as copy engines would carry out
    std::int64_t splits;         // communicators made of others, ever
    std::int64_t aborts;         // ever
    std::int64_t most_ctas;      // of the latest communicator; 0 if NCCL chooses
};

using FakeNcclStatisticsOf = void (*)(FakeNcclStatistics*);     // fakeNcclStatistics
using FakeNcclFail = void (*)(int rank, int call, int result);  // fakeNcclFail: as FAKE_NCCL_FAIL, counted from now on
