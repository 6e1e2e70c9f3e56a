#pragma once

/// Fixture for every test that uses the fake runtime.

#include <doctest/doctest.h>

#include "fake_runtime/fake_runtime.hpp"
#include "matrix/encode_for_launch.hpp"
#include "support/errors.hpp"
#include "tessera/tessera.hpp"

namespace tessera::test {

/// Starts with a fresh runtime. After the test, everything must have been freed and nothing misused; the test itself
/// must have read any dropped or pending error.
struct CleanRuntime {
    CleanRuntime()
    {
        fake::reset();
        detail::forget_tensor_map_encoder();
        static_cast<void>(dropped_errors());
    }
    ~CleanRuntime()
    {
        CHECK(fake::live() == fake::Live{});
        CHECK(fake::misuses() == std::vector<std::string>{});
        CHECK(dropped_errors() == std::vector<std::string>{});
        CHECK(cudaPeekAtLastError() == cudaSuccess);
    }
    CleanRuntime(const CleanRuntime&) = delete;
    CleanRuntime& operator=(const CleanRuntime&) = delete;
};

}  // namespace tessera::test
