#pragma once

/// Launches a user's own kernel with arguments that are checked against its signature at compile time.
///
///     __global__ void add(DisjointSpan<float> c, DeviceSpan<const float> a, DeviceSpan<const float> b);
///     launch(add, LaunchConfig::covering(stream, c.size()), DisjointSpan(c), a.span(), b.span());

#include <cuda_runtime_api.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>
#include <utility>

#include "tessera/stream.hpp"

namespace tessera {

/// Extents of a grid (in CTAs), a CTA (in threads) or a cluster (in CTAs).
struct Dim3 {
    unsigned x = 1;  ///< innermost dimension
    unsigned y = 1;  ///< middle dimension
    unsigned z = 1;  ///< outermost dimension

    /// The product of the three.
    constexpr std::uint64_t count() const noexcept { return std::uint64_t{x} * y * z; }
    /// True if all three are equal.
    friend constexpr bool operator==(const Dim3&, const Dim3&) = default;
};

/// Where and how a kernel runs. A value; one object is not to be changed by two threads at once.
class LaunchConfig {
public:
    /// @param grid   CTAs of the grid
    /// @param block  threads of one CTA
    LaunchConfig(StreamRef stream, Dim3 grid, Dim3 block, std::source_location caller = std::source_location::current())
        : stream_(stream), grid_(grid), block_(block), caller_(caller)
    {}

    /// A one-dimensional grid with at least one thread for each of `count` elements. For 0 elements nothing is
    /// launched.
    /// @throws Error `launch_refused` if that takes more than 2^31 - 1 CTAs
    static LaunchConfig covering(StreamRef stream, std::size_t count, unsigned threads_per_block = 256,
                                 std::source_location caller = std::source_location::current());

    /// A grid of CTAs of (x, y) = (columns, rows) threads with at least one thread for each element of `matrix`: a view,
    /// a DisjointMatrix or whatever has rows and columns. Where the rows need more CTAs than a grid has in y, it goes on
    /// in z, as `ThreadIndex2D` counts. For a matrix without elements nothing is launched.
    /// @throws Error `launch_refused` if that takes more CTAs than a grid has
    template <class Matrix>
        requires requires(const Matrix& matrix) {
            { matrix.rows() } -> std::convertible_to<std::int64_t>;
            { matrix.columns() } -> std::convertible_to<std::int64_t>;
        }
    static LaunchConfig covering(StreamRef stream, const Matrix& matrix, Dim3 block = {32, 8},
                                 std::source_location caller = std::source_location::current())
    {
        return covering_matrix(stream, matrix.rows(), matrix.columns(), block, caller);
    }

    /// CTAs of one thread-block cluster; the grid must be a multiple of it in each dimension (compute capability 9.0).
    LaunchConfig& cluster(Dim3 extents) noexcept
    {
        cluster_ = extents;
        return *this;
    }
    /// All CTAs of the grid run at the same time, so that they may wait for each other, e.g. at the grid barrier of
    /// cooperative groups. A grid that the device cannot hold at once is refused by the launch.
    LaunchConfig& cooperative() noexcept
    {
        cooperative_ = true;
        return *this;
    }
    /// The kernel may begin while the one in front of it in the stream still runs (programmatic dependent launch): it
    /// has to call `cudaGridDependencySynchronize()` before it touches what that kernel writes, and before it writes
    /// what that kernel reads. Compute capability 9.0.
    LaunchConfig& programmatic_dependent_launch() noexcept
    {
        programmatic_dependent_launch_ = true;
        return *this;
    }
    /// Dynamic shared memory of one CTA. The kernel's limit is raised as needed.
    LaunchConfig& shared_memory_bytes(std::size_t bytes) noexcept
    {
        shared_memory_bytes_ = bytes;
        return *this;
    }

    /// Where the kernel runs.
    StreamRef stream() const noexcept { return stream_; }
    /// CTAs of the grid.
    Dim3 grid() const noexcept { return grid_; }
    /// Threads of one CTA.
    Dim3 block() const noexcept { return block_; }
    /// CTAs of one cluster; (1, 1, 1) is none.
    Dim3 cluster() const noexcept { return cluster_; }
    /// Whether all CTAs run at the same time.
    bool is_cooperative() const noexcept { return cooperative_; }
    /// Whether the kernel may begin before the one in front of it has ended.
    bool is_programmatic_dependent_launch() const noexcept { return programmatic_dependent_launch_; }
    /// Dynamic shared memory of one CTA.
    std::size_t shared_memory_bytes() const noexcept { return shared_memory_bytes_; }
    /// Where the configuration was made; errors of the launch name it.
    const std::source_location& caller() const noexcept { return caller_; }
    /// True only for the result of `covering` nothing.
    bool empty() const noexcept { return empty_; }

private:
    static LaunchConfig covering_matrix(StreamRef stream, std::int64_t rows, std::int64_t columns, Dim3 block,
                                        const std::source_location& caller);

    StreamRef stream_;
    Dim3 grid_;
    Dim3 block_;
    Dim3 cluster_{};
    std::size_t shared_memory_bytes_ = 0;
    bool cooperative_ = false;
    bool programmatic_dependent_launch_ = false;
    bool empty_ = false;
    std::source_location caller_;
};

namespace detail {

/// An argument fits a parameter if it has its type or converts to it without narrowing.
template <class Argument, class Parameter>
concept KernelArgument = std::same_as<std::remove_cvref_t<Argument>, std::remove_cv_t<Parameter>> ||
                         requires(Argument&& argument) { Parameter{std::forward<Argument>(argument)}; };

/// Says which argument does not fit; the compiler adds the two types.
template <std::size_t Position, class Argument, class Parameter>
struct ArgumentOfLaunch {
    static constexpr bool fits = KernelArgument<Argument, Parameter>;
    static_assert(fits || Position != 0,
                  "tessera: the first argument of launch does not have the type of the kernel's parameter and does not "
                  "convert to it without loss");
    static_assert(fits || Position != 1,
                  "tessera: the second argument of launch does not have the type of the kernel's parameter and does "
                  "not convert to it without loss");
    static_assert(fits || Position != 2,
                  "tessera: the third argument of launch does not have the type of the kernel's parameter and does not "
                  "convert to it without loss");
    static_assert(fits || Position != 3,
                  "tessera: the fourth argument of launch does not have the type of the kernel's parameter and does "
                  "not convert to it without loss");
    static_assert(fits || Position != 4,
                  "tessera: the fifth argument of launch does not have the type of the kernel's parameter and does not "
                  "convert to it without loss");
    static_assert(fits || Position != 5,
                  "tessera: the sixth argument of launch does not have the type of the kernel's parameter and does not "
                  "convert to it without loss");
    static_assert(fits || Position != 6,
                  "tessera: the seventh argument of launch does not have the type of the kernel's parameter and does "
                  "not convert to it without loss");
    static_assert(fits || Position != 7,
                  "tessera: the eighth argument of launch does not have the type of the kernel's parameter and does "
                  "not convert to it without loss");
    static_assert(fits || Position < 8,
                  "tessera: an argument of launch behind the eighth does not have the type of the kernel's parameter "
                  "and does not convert to it without loss");
};

/// The same for all of them, in order.
template <class Indices, class Arguments, class Parameters>
struct ArgumentsOfLaunch;
template <class... T>
struct TypeList;
template <std::size_t... Indices, class... Arguments, class... Parameters>
struct ArgumentsOfLaunch<std::index_sequence<Indices...>, TypeList<Arguments...>, TypeList<Parameters...>> {
    static constexpr bool fit = (ArgumentOfLaunch<Indices, Arguments, Parameters>::fits && ...);
};

/// A kernel's arguments in the types of its parameters: what CUDA copies from.
template <std::size_t Index, class Parameter>
struct KernelValue {
    Parameter value;
};
template <class Indices, class... Parameters>
struct KernelValues;
template <std::size_t... Indices, class... Parameters>
struct KernelValues<std::index_sequence<Indices...>, Parameters...> : KernelValue<Indices, Parameters>... {
    /// One more than there are, so that a kernel without parameters has an array too.
    std::array<void*, sizeof...(Parameters) + 1> addresses() noexcept
    {
        return {static_cast<void*>(&static_cast<KernelValue<Indices, Parameters>&>(*this).value)...};
    }
};

/// Checks the configuration and launches. `arguments` holds the address of each argument.
void launch_kernel(const void* kernel, const LaunchConfig& config, void** arguments);

template <class Argument>
void require_argument_device(const LaunchConfig& config, const Argument& argument)
{
    if constexpr (requires {
                      { argument.device() } -> std::same_as<int>;
                  }) {
        require_same_device("launch", config.caller(), "the stream", config.stream().device(), "an argument",
                            argument.device());
    }
}

}  // namespace detail

/// Launches `kernel`, a `__global__` function, asynchronously on `config.stream()`. Does not synchronize. Each argument
/// must have the type of the kernel's parameter or convert to it without loss. Memory that the kernel uses must stay
/// until it has finished.
///
/// Can be captured into a graph. What goes wrong while the kernel runs is reported by a later call as `context_lost`.
/// @throws Error `launch_refused` naming the kernel and the limit that was passed, `device_mismatch`,
///               `unsupported_device` if the program has no code for the device. Nothing runs then.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const LaunchConfig& config, Arguments&&... arguments)
{
    static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                  "tessera: launch was given another number of arguments than the kernel has parameters");
    if constexpr (sizeof...(Parameters) == sizeof...(Arguments)) {
        if constexpr (detail::ArgumentsOfLaunch<std::index_sequence_for<Parameters...>, detail::TypeList<Arguments...>,
                                                detail::TypeList<Parameters...>>::fit) {
            (detail::require_argument_device(config, arguments), ...);
            detail::KernelValues<std::index_sequence_for<Parameters...>, std::remove_cv_t<Parameters>...> values{
                {std::forward<Arguments>(arguments)}...};
            detail::launch_kernel(reinterpret_cast<const void*>(kernel), config, values.addresses().data());
        }
    }
}

}  // namespace tessera
