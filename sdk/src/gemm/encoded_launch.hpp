#pragma once

/// A product that is ready to be enqueued: kernel, grid and arguments, with the tensor maps in them. It depends on the
/// operands and the workspace, but not on the stream, so it can be kept and enqueued again.

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "base/call_status.hpp"
#include "kernels/hopper/hopper_repack.hpp"
#include "tessera/stream.hpp"

namespace tessera::detail {

struct EncodedLaunch {
    static constexpr std::size_t most_argument_bytes = 2048;
    static constexpr std::size_t argument_alignment = 128;

    const void* function = nullptr;  // its only parameter is a struct by value
    std::uint32_t ctas = 0;
    std::uint32_t threads = 0;  // per CTA
    std::uint32_t shared_bytes = 0;
    std::uint32_t cluster = 1;  // CTAs per cluster
    bool programmatic = false;  // may start before the previous kernel has ended; waits for it itself

    // Operands that another kernel copies first.
    std::array<kernels::Repacking, 2> copies;
    std::uint32_t copy_count = 0;
    std::uint32_t copied_element_bytes = 0;

    alignas(
        argument_alignment) std::array<std::byte, most_argument_bytes> argument;  // no initial value, as it is large

    /// Returns the arguments, all zero, to be filled in.
    template <class Arguments>
    Arguments& emplace_arguments()
    {
        static_assert(sizeof(Arguments) <= most_argument_bytes && alignof(Arguments) <= argument_alignment);
        static_assert(std::is_trivially_copyable_v<Arguments> && std::is_trivially_destructible_v<Arguments>);
        return *::new (static_cast<void*>(argument.data())) Arguments{};
    }
};

/// Enqueues the kernel, and before it the copies, if any. The stream's device must be current.
CallStatus enqueue(const EncodedLaunch& launch, StreamRef stream);

}  // namespace tessera::detail
