#include "fake_region.hpp"

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace fake_nccl {
namespace {

constexpr std::size_t head_bytes = (sizeof(Shared) + 4095) / 4096 * 4096;
constexpr std::size_t slots = std::size_t{most_ranks} * most_ranks + most_ranks;
constexpr std::size_t all_bytes = head_bytes + slots * slot_bytes;

}  // namespace

Region::Region(std::string path) : path_(std::move(path))
{
    const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, static_cast<off_t>(all_bytes)) != 0) {
        throw std::runtime_error("cannot make " + path_);
    }
    memory_ = mmap(nullptr, all_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory_ == MAP_FAILED) {
        throw std::runtime_error("cannot map " + path_);
    }
    // Copies from and to pageable memory would make the host wait.
    if (cudaHostRegister(memory_, all_bytes, cudaHostRegisterDefault) != cudaSuccess) {
        throw std::runtime_error("cannot page-lock " + path_);
    }
}

Region::~Region()
{
    cudaHostUnregister(memory_);
    munmap(memory_, all_bytes);
}

std::byte* Region::slot(int from, int to) const
{
    return static_cast<std::byte*>(memory_) + head_bytes +
           static_cast<std::size_t>(from * most_ranks + to) * slot_bytes;
}

std::byte* Region::result(int rank) const
{
    return static_cast<std::byte*>(memory_) + head_bytes +
           static_cast<std::size_t>(most_ranks * most_ranks + rank) * slot_bytes;
}

void Region::remove_file() const { unlink(path_.c_str()); }

}  // namespace fake_nccl
