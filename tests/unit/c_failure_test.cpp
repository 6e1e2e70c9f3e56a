/// No failure leaves the C ABI as an exception: each CUDA call fails once, each allocation fails once, and a callback throws.

#include <array>
#include <string>
#include <vector>

#include "clean_runtime.hpp"
#include "heap_count.hpp"
#include "tessera.h"

using namespace tessera;
using tessera::test::CleanRuntime;

namespace {

/// Uses everything that can fail. Returns the first status that is no success.
tessera_status use_everything() noexcept
{
    tessera_status first = TESSERA_SUCCESS;
    const auto note = [&](tessera_status status) {
        if (first == TESSERA_SUCCESS) {
            first = status;
        }
        return status == TESSERA_SUCCESS;
    };
    std::array<tessera_buffer*, 4> buffers{};
    constexpr std::size_t bytes = 64 * sizeof(float);
    std::array<float, 64> host{};
    for (tessera_buffer*& buffer : buffers) {
        note(tessera_buffer_create(-1, nullptr, bytes, &buffer));
    }
    if (first == TESSERA_SUCCESS) {
        note(tessera_buffer_upload(buffers[0], 0, host.data(), bytes));
        note(tessera_buffer_copy(nullptr, buffers[1], 0, buffers[0], 0, bytes));
        std::array<tessera_matrix, 4> views{};
        for (std::size_t i = 0; i < views.size(); ++i) {
            views[i] = tessera_row_major(tessera_buffer_data(buffers[i]), TESSERA_F32, 8, 8, 8);
        }
        tessera_epilogue epilogue{};
        epilogue.size = sizeof(epilogue);
        epilogue.c = &views[3];
        epilogue.bias = {tessera_buffer_data(buffers[3]), TESSERA_F32, -1, 8};
        note(tessera_gemm(nullptr, &views[0], &views[1], &views[2], &epilogue, nullptr));
        tessera_plan* plan = nullptr;
        if (note(tessera_plan_create(-1, &views[0], &views[1], &views[2], &epilogue, nullptr, &plan))) {
            note(tessera_plan_launch(plan, nullptr, &views[0], &views[1], &views[2], &epilogue, nullptr));
            std::array<char, 64> text{};
            note(tessera_plan_explain(plan, text.data(), text.size(), nullptr));
        }
        tessera_plan_destroy(plan);
        note(tessera_explain(0, &views[0], &views[1], &views[2], nullptr, TESSERA_AUTOMATIC, nullptr, 0, nullptr));
        int number = 0;
        note(tessera_compute_capability(0, &number));
        note(tessera_is_capturing(nullptr, &number));
        note(tessera_stream_wait(-1, nullptr, nullptr));
        note(tessera_buffer_used_on(buffers[1], nullptr));
        note(tessera_synchronize(nullptr));
        note(tessera_buffer_download(buffers[2], 0, host.data(), bytes));
    }
    for (tessera_buffer* const buffer : buffers) {
        tessera_buffer_destroy(buffer);
    }
    return first;
}

}  // namespace

TEST_CASE_FIXTURE(CleanRuntime, "C ABI: the run that the next cases disturb succeeds")
{
    CHECK(use_everything() == TESSERA_SUCCESS);
}

TEST_CASE_FIXTURE(CleanRuntime, "C ABI: every CUDA call that fails becomes a status with a text, and nothing leaks")
{
    int reported = 0;
    int nth = 1;
    for (;; ++nth) {
        fake::reset();
        fake::fail_call(nth, cudaErrorUnknown);
        const tessera_status status = use_everything();
        CAPTURE(nth);
        const std::vector<std::string> dropped = dropped_errors();
        if (!fake::fault_occurred()) {
            CHECK(status == TESSERA_SUCCESS);
            break;
        }
        const std::string call = fake::calls()[static_cast<std::size_t>(nth) - 1].name;
        CAPTURE(call);
        if (status != TESSERA_SUCCESS) {
            ++reported;
            CHECK(status == TESSERA_CUDA_FAILURE);
            CHECK(tessera_last_cuda_error() == cudaErrorUnknown);
            CHECK(std::string(tessera_last_error()).find("cudaErrorUnknown") != std::string::npos);
        } else {  // destructors, and a query whose failure has an answer
            const bool is_silent = !dropped.empty() || call == "cudaStreamIsCapturing";
            CHECK(is_silent);
        }
        CHECK(fake::live() == fake::Live{});
    }
    CHECK(nth > 40);
    CHECK(reported > 20);
    fake::reset();
}

TEST_CASE_FIXTURE(CleanRuntime, "C ABI: every allocation on the host that fails becomes a status, and nothing leaks")
{
    int failed = 0;
    for (long nth = 1;; ++nth) {
        test::fail_allocation(nth);
        const tessera_status status = use_everything();
        CAPTURE(nth);
        if (!test::allocation_has_failed()) {
            CHECK(status == TESSERA_SUCCESS);
            break;
        }
        ++failed;
        CHECK((status == TESSERA_OUT_OF_MEMORY || status == TESSERA_SUCCESS));
    }
    CHECK(failed > 5);
}

TEST_CASE_FIXTURE(CleanRuntime, "C ABI: a text that there is no memory for is replaced")
{
    test::fail_allocation(2);  // the first is the error's own text
    const tessera_status status = tessera_variant_from_name("a name that is longer than any small string", nullptr);
    CHECK(test::allocation_has_failed());
    CHECK((status == TESSERA_OUT_OF_MEMORY || status == TESSERA_INVALID_ARGUMENT));
    CHECK(std::string(tessera_last_error()).find("memory") != std::string::npos);
}

TEST_CASE_FIXTURE(CleanRuntime, "C ABI: what an allocator throws stays inside")
{
    const auto launch = [] {
        tessera_buffer* buffer = nullptr;
        REQUIRE(tessera_buffer_create(-1, nullptr, 3U << 21U, &buffer) == TESSERA_SUCCESS);
        auto* const data = static_cast<char*>(tessera_buffer_data(buffer));
        const tessera_matrix a = tessera_row_major(data, TESSERA_BF16, 64, 16384, 16384);
        const tessera_matrix b = tessera_row_major(data + (2U << 20U), TESSERA_BF16, 16384, 64, 64);
        const tessera_matrix d = tessera_row_major(data + (4U << 20U), TESSERA_BF16, 64, 64, 64);
        const tessera_status status = tessera_gemm(nullptr, &a, &b, &d, nullptr, nullptr);
        tessera_buffer_destroy(buffer);
        return status;
    };
    const auto throws_a_number = [](void*, std::size_t, std::size_t, tessera_stream) -> void* { throw 7; };
    const auto throws_a_text = [](void*, std::size_t, std::size_t, tessera_stream) -> void* {
        throw std::runtime_error("the pool is closed");
    };
    const auto is_empty = [](void*, std::size_t, std::size_t, tessera_stream) -> void* { return nullptr; };
    const auto frees = [](void*, void*, std::size_t, std::size_t, tessera_stream) {};
    tessera_release_workspaces();
    CHECK(tessera_set_workspace_allocator(0, nullptr, throws_a_number, frees) == TESSERA_SUCCESS);
    CHECK(launch() == TESSERA_UNKNOWN_FAILURE);
    CHECK(std::string(tessera_last_error()).find("unknown_failure in tessera_gemm") != std::string::npos);
    CHECK(tessera_set_workspace_allocator(0, nullptr, throws_a_text, frees) == TESSERA_SUCCESS);
    CHECK(launch() == TESSERA_UNKNOWN_FAILURE);
    CHECK(std::string(tessera_last_error()).find("the pool is closed") != std::string::npos);
    CHECK(tessera_set_workspace_allocator(0, nullptr, is_empty, frees) == TESSERA_SUCCESS);
    CHECK(launch() == TESSERA_OUT_OF_MEMORY);
    CHECK(tessera_set_workspace_allocator(0, nullptr, nullptr, nullptr) == TESSERA_SUCCESS);
    CHECK(launch() == TESSERA_SUCCESS);
    tessera_release_workspaces();
}
