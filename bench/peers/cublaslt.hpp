#pragma once

/// cuBLASLt as a contender: its heuristic's first choice, and the fastest of the algorithms that it proposes.

#include <cublasLt.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gemm/contender.hpp"
#include "tessera/device_buffer.hpp"
#include "tessera/stream.hpp"

namespace tessera::bench {

/// Number of algorithms that are requested and timed for the "best of" contender.
inline constexpr std::size_t cublaslt_candidates = 16;

/// Owns a cuBLASLt handle and a workspace that all products of one stream share. Must outlive what was prepared.
class CublasLt {
public:
    /// @throws std::runtime_error if cuBLASLt does not work, as on the emulated device
    explicit CublasLt(StreamRef stream);
    ~CublasLt();
    CublasLt(const CublasLt&) = delete;
    CublasLt& operator=(const CublasLt&) = delete;

    /// Returns products with the first `most` algorithms that the heuristic proposes for the problem, best guess first.
    /// Empty if there is none.
    std::vector<Enqueue> candidates(const Task& task, std::size_t most) const;

    /// For example "13.0.2".
    static std::string version();

private:
    DeviceBuffer<unsigned char> workspace_;
    cublasLtHandle_t handle_ = nullptr;
};

/// The heuristic's first choice, and the fastest of its first cublaslt_candidates according to `Task::race`.
std::vector<GemmContender> cublaslt_contenders(const CublasLt& cublaslt);

}  // namespace tessera::bench
