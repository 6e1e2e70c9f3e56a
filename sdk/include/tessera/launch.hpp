#pragma once

/// @file
/// @ingroup host_launch
/// @brief Launches your own kernels, with arguments that are checked against the kernel's signature at compile time.

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

    /// Returns the product of the three.
    constexpr std::uint64_t count() const noexcept { return std::uint64_t{x} * y * z; }
    /// Returns true if all three are equal.
    friend constexpr bool operator==(const Dim3&, const Dim3&) = default;
};

/// Where and how a kernel runs: stream, grid, CTA, cluster, shared memory.
///
/// @code{.cpp}
/// LaunchConfig config(stream, {132}, {256});
/// config.cluster({2}).shared_memory_bytes(64 * 1024);
/// @endcode
///
/// @par Thread safety
/// A value; two threads must not change one object at the same time.
class LaunchConfig {
public:
    /// A grid of CTAs on a stream.
    /// @param stream  where the kernel runs
    /// @param grid    CTAs of the grid
    /// @param block   threads of one CTA
    LaunchConfig(StreamRef stream, Dim3 grid, Dim3 block, std::source_location caller = std::source_location::current())
        : stream_(stream), grid_(grid), block_(block), caller_(caller)
    {}

    /// Returns a one-dimensional grid with at least one thread for each of `count` elements. For 0 elements nothing is
    /// launched.
    /// @throws Error  `launch_refused` if that needs more than 2^31 - 1 CTAs, or for CTAs without threads
    static LaunchConfig covering(StreamRef stream, std::size_t count, unsigned threads_per_block = 256,
                                 std::source_location caller = std::source_location::current());

    /// Returns a grid with at least one thread for each element of `matrix`. A CTA has (x, y) = (columns, rows)
    /// threads. If the rows need more CTAs than a grid has in y, the grid continues in z, as `ThreadIndex2D` counts.
    /// For a matrix without elements nothing is launched.
    /// @tparam Matrix  a view, a DisjointMatrix, or another type with rows() and columns()
    /// @throws Error  `launch_refused` if that needs more CTAs than a grid has, or for CTAs without threads
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

    /// Sets the CTAs of one thread-block cluster. The grid must be a multiple of it in each dimension. Needs compute
    /// capability 9.0.
    LaunchConfig& cluster(Dim3 extents) noexcept
    {
        cluster_ = extents;
        return *this;
    }
    /// Makes all CTAs of the grid run at the same time, so that they may wait for each other, for example at the grid
    /// barrier of cooperative groups. The launch refuses a grid that the device cannot hold at once.
    LaunchConfig& cooperative() noexcept
    {
        cooperative_ = true;
        return *this;
    }
    /// Lets the kernel begin while the one before it in the stream still runs (programmatic dependent launch). The
    /// kernel must call `cudaGridDependencySynchronize()` before it touches what that kernel writes, and before it
    /// writes what that kernel reads. Needs compute capability 9.0.
    LaunchConfig& programmatic_dependent_launch() noexcept
    {
        programmatic_dependent_launch_ = true;
        return *this;
    }
    /// Sets the dynamic shared memory of one CTA, in bytes. The launch raises the kernel's limit as needed.
    LaunchConfig& shared_memory_bytes(std::size_t bytes) noexcept
    {
        shared_memory_bytes_ = bytes;
        return *this;
    }

    /// Returns the stream.
    StreamRef stream() const noexcept { return stream_; }
    /// Returns the CTAs of the grid.
    Dim3 grid() const noexcept { return grid_; }
    /// Returns the threads of one CTA.
    Dim3 block() const noexcept { return block_; }
    /// Returns the CTAs of one cluster; (1, 1, 1) means no clusters.
    Dim3 cluster() const noexcept { return cluster_; }
    /// Returns true if all CTAs run at the same time.
    bool is_cooperative() const noexcept { return cooperative_; }
    /// Returns true if the kernel may begin before the one before it has ended.
    bool is_programmatic_dependent_launch() const noexcept { return programmatic_dependent_launch_; }
    /// Returns the dynamic shared memory of one CTA, in bytes.
    std::size_t shared_memory_bytes() const noexcept { return shared_memory_bytes_; }
    /// Returns where the configuration was made; errors of the launch name this place.
    const std::source_location& caller() const noexcept { return caller_; }
    /// Returns true for the result of `covering` 0 elements: nothing is launched.
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
                  "tessera: an argument of launch after the eighth does not have the type of the kernel's parameter "
                  "and does not convert to it without loss");
};

/// Checks all arguments, in order.
template <class Indices, class Arguments, class Parameters>
struct ArgumentsOfLaunch;
template <class... T>
struct TypeList;
template <std::size_t... Indices, class... Arguments, class... Parameters>
struct ArgumentsOfLaunch<std::index_sequence<Indices...>, TypeList<Arguments...>, TypeList<Parameters...>> {
    static constexpr bool fit = (ArgumentOfLaunch<Indices, Arguments, Parameters>::fits && ...);
};

/// A kernel's arguments in the types of its parameters: CUDA copies from here.
template <std::size_t Index, class Parameter>
struct KernelValue {
    Parameter value;
};
template <class Indices, class... Parameters>
struct KernelValues;
template <std::size_t... Indices, class... Parameters>
struct KernelValues<std::index_sequence<Indices...>, Parameters...> : KernelValue<Indices, Parameters>... {
    /// One more than needed, so that a kernel without parameters has an array, too.
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

/// Launches `kernel`, a `__global__` function, on `config.stream()`.
///
/// @code{.cpp}
/// __global__ void add_one(DisjointSpan<float> out, DeviceSpan<const float> in)
/// {
///     const auto index = ThreadIndex::in_grid();
///     if (out.contains(index)) out[index] = in[index.value()] + 1;
/// }
///
/// void run(StreamRef stream, DeviceBuffer<float>& out, const DeviceBuffer<float>& in)
/// {
///     launch(add_one, LaunchConfig::covering(stream, out.size()), DisjointSpan(out), in.span());
/// }
/// @endcode
///
/// @par Synchronization
/// Asynchronous: the call does not wait, and the kernel is ordered after all earlier work on the stream. Memory that
/// the kernel uses must stay alive until it has finished. A launch can be captured into a graph.
///
/// @param kernel     a `__global__` function
/// @param config     where and how it runs
/// @param arguments  one for each parameter, of its type or of one that converts to it without loss; anything else does
///                   not compile
/// @throws Error  `launch_refused`, which names the kernel and the limit, if the configuration breaks a limit;
///                `device_mismatch` if an argument is on another device than the stream; `unsupported_device` if the
///                device lacks a requested feature or the program has no code for it; `empty_handle` for a null kernel.
///                Nothing runs then. If the kernel fails while it runs, a later call throws `context_lost`.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const LaunchConfig& config, Arguments&&... arguments)
{
    static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                  "tessera: launch needs as many arguments as the kernel has parameters");
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
