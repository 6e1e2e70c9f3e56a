#pragma once

// What the recorder's parts share: the list of facts, device memory, and values as text.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace tessera::truth {

/// Ends the process on an error: a fact that cannot be asked for is not a fact.
inline void check(cudaError_t status, const std::string& what)
{
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what.c_str(), cudaGetErrorName(status));
        std::exit(1);
    }
}

/// Records facts as lines "name = value". Values must not depend on timing, addresses or the process.
class Facts {
public:
    explicit Facts(std::FILE* out) : out_(out) {}
    void add(const std::string& name, const std::string& value)
    {
        std::fprintf(out_, "%s = %s\n", name.c_str(), value.c_str());
        std::fflush(out_);
    }

private:
    std::FILE* out_;
};

/// Facts asked for in a separate process.
struct Section {
    std::string name;
    void (*ask)(Facts& facts, int variant);
    int variant = 0;
};

std::vector<Section> tensor_load_sections();
std::vector<Section> tensor_store_sections();
std::vector<Section> barrier_sections();
std::vector<Section> cluster_sections();
std::vector<Section> matrix_sections();

/// An array in device memory.
template <typename Element>
class DeviceArray {
public:
    explicit DeviceArray(const std::vector<Element>& values) : size_(values.size())
    {
        check(cudaMalloc(&data_, size_ * sizeof(Element)), "cudaMalloc");
        check(cudaMemcpy(data_, values.data(), size_ * sizeof(Element), cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;
    ~DeviceArray() { cudaFree(data_); }

    [[nodiscard]] Element* data() const { return data_; }
    /// Its contents when all launches are complete.
    [[nodiscard]] std::vector<Element> values() const
    {
        std::vector<Element> result(size_);
        check(cudaMemcpy(result.data(), data_, size_ * sizeof(Element), cudaMemcpyDeviceToHost), "cudaMemcpy");
        return result;
    }

private:
    Element* data_ = nullptr;
    std::size_t size_;
};

/// Waits for a kernel. Returns "" if it succeeded, else the error's name.
inline std::string outcome()
{
    const cudaError_t launched = cudaGetLastError();
    const cudaError_t finished = cudaDeviceSynchronize();
    const cudaError_t status = launched != cudaSuccess ? launched : finished;
    return status == cudaSuccess ? std::string() : cudaGetErrorName(status);
}

inline std::string hex(std::uint64_t value, int digits)
{
    char text[20];
    std::snprintf(text, sizeof text, "%0*llx", digits, static_cast<unsigned long long>(value));
    return text;
}

/// The byte that fills shared memory before a fact shows what was written.
constexpr unsigned char untouched = 0xEE;
constexpr std::uint32_t untouched_word = 0xEEEEEEEE;

/// Words that count up as "first-last", equal words as "value*count", untouched words as "-".
inline std::string runs(const std::vector<std::uint32_t>& words)
{
    const auto text_of = [](std::uint32_t word) {
        return word == untouched_word ? std::string("-") : word < 100000 ? std::to_string(word) : "0x" + hex(word, 8);
    };
    std::string text;
    for (std::size_t begin = 0; begin < words.size();) {
        std::size_t same = begin + 1, rising = begin + 1;
        while (same < words.size() && words[same] == words[begin]) {
            ++same;
        }
        while (rising < words.size() && words[rising] == words[rising - 1] + 1) {
            ++rising;
        }
        text += text.empty() ? "" : " ";
        text += text_of(words[begin]);
        if (same > begin + 1) {
            text += "*" + std::to_string(same - begin);
        } else if (rising > begin + 1) {
            text += "-" + text_of(words[rising - 1]);
        }
        begin = same > rising ? same : rising;
    }
    return text;
}

/// FNV-1a, for values that are too long to print.
template <typename Element>
std::string checksum(const std::vector<Element>& values)
{
    std::uint64_t hash = 0xCBF29CE484222325;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (std::size_t i = 0; i < values.size() * sizeof(Element); ++i) {
        hash = (hash ^ bytes[i]) * 0x100000001B3;
    }
    return hex(hash, 16);
}

}  // namespace tessera::truth
