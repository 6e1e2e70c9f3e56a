/// The cost of a launch besides the kernel: one node, no heap allocation, no wait. Needs a device.

#include <doctest/doctest.h>

#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "device_fixture.hpp"
#include "gemm/variant_chooser.hpp"
#include "support/forced_choice.hpp"
#include "support/gemm_runner.hpp"
#include "support/test_main.hpp"

namespace {

thread_local bool counting = false;
thread_local std::size_t allocations = 0;

void* counted_allocation(std::size_t size, std::size_t alignment)
{
    allocations += counting;
    void* const memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}

}  // namespace

// The forms that are not replaced (arrays, nothrow) call these.
void* operator new(std::size_t size) { return counted_allocation(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment)
{
    return counted_allocation(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

using namespace tessera;
using namespace tessera::test;

namespace {

/// Returns the number of this thread's heap allocations while `work` runs.
template <class Work>
std::size_t allocations_of(const Work& work)
{
    allocations = 0;
    counting = true;
    work();
    counting = false;
    return allocations;
}

struct Operands {
    explicit Operands(StreamRef stream) : a(stream, 64 * 64), b(stream, 64 * 64), d(stream, 64 * 64), bias(stream, 64)
    {
        a.fill(stream, 1);
        b.fill(stream, 1);
        d.fill(stream, 1);
        bias.fill(stream, 1);
    }
    Epilogue epilogue()
    {
        return {
            .beta = 0.5F, .c = d.matrix(64, 64), .bias = Bias::per_row(bias.span()), .activation = Activation::gelu};
    }

    DeviceBuffer<float> a;
    DeviceBuffer<float> b;
    DeviceBuffer<float> d;
    DeviceBuffer<float> bias;
};

}  // namespace

TEST_CASE("the heap counter counts an allocation")
{
    CHECK(allocations_of([] { delete new int; }) == 1);
    CHECK(allocations_of([] { const std::vector<int> numbers(100); }) == 1);
}

TEST_CASE("Gemm::launch makes no heap allocation after the first one")
{
    const Stream stream;
    Operands operands(stream);
    for (const Variant variant : simt_variants()) {
        const auto launch_once = [&] {
            Gemm::launch(stream, operands.a.matrix(64, 64), operands.b.matrix(64, 64), operands.d.matrix(64, 64),
                         operands.epilogue(), variant);
        };
        launch_once();
        CHECK_MESSAGE(allocations_of([&] {
                          for (int i = 0; i < 100; ++i) {
                              launch_once();
                          }
                      }) == 0,
                      to_string(variant));
    }
    GemmProblem problem;
    problem.m = problem.n = problem.k = 64;
    const GemmPlan plan = GemmPlan::prepare(Device(stream.device()), problem);
    CHECK(allocations_of([&] {
              plan.launch(stream, operands.a.matrix(64, 64), operands.b.matrix(64, 64), operands.d.matrix(64, 64));
          }) == 0);
    stream.synchronize();
}

TEST_CASE("Gemm::launch is one kernel node with every variant and epilogue, batches included")
{
    const Stream stream;
    Operands operands(stream);
    for (const Variant variant : simt_variants()) {
        const Graph one = Graph::capture(stream, [&](StreamRef s) {
            Gemm::launch(s, operands.a.matrix(64, 64), operands.b.matrix(64, 64), operands.d.matrix(64, 64),
                         operands.epilogue(), variant);
        });
        const Graph batch = Graph::capture(stream, [&](StreamRef s) {
            Gemm::launch(s, operands.a.span().matrices(16, 256, 16, 16, 16),
                         operands.b.span().matrices(16, 256, 16, 16, 16),
                         operands.d.span().matrices(16, 256, 16, 16, 16), {}, variant);
        });
        for (const Graph* graph : {&one, &batch}) {
            cudaGraphNode_t nodes[2] = {};
            std::size_t count = 2;
            REQUIRE(graph->node_count() == 1);
            REQUIRE(cudaGraphGetNodes(graph->get(), nodes, &count) == cudaSuccess);
            cudaGraphNodeType type{};
            REQUIRE(cudaGraphNodeGetType(nodes[0], &type) == cudaSuccess);
            CHECK(type == cudaGraphNodeTypeKernel);
        }
    }
}

TEST_CASE("tensor-core variants, in each kind of configuration, are one kernel or two, no allocation, no wait")
{
    const Stream stream;
    const Device device(stream.device());
    int kinds = 0;
    for (const std::int64_t k : {1024, 1023}) {  // TMA cannot address rows of 1023 elements
        const GemmProblem problem =
            detail::resolved({.m = 128, .n = 64, .k = k, .input = ElementType::bf16, .output = ElementType::bf16});
        DeviceBuffer<bf16> a(stream, static_cast<std::size_t>(128 * k));
        DeviceBuffer<bf16> b(stream, static_cast<std::size_t>(k * 64));
        a.fill(stream, bf16(1.0F));
        b.fill(stream, bf16(1.0F));
        DeviceBuffer<bf16> d(stream, 128 * 64);
        for (const detail::KernelChoice& choice : one_of_each_kind(problem, device.properties())) {
            const ForcedChoice forced(problem, device.properties(), choice);
            const GemmPlan plan = GemmPlan::prepare(device, problem);
            CAPTURE(plan.explain());
            const std::size_t kernels = plan.explain().find("repacked first") != std::string::npos ? 2 : 1;
            REQUIRE(plan.variant() == choice.variant);
            const bool splits_k_in_memory = choice.variant == Variant::mma_sync && choice.cluster_k > 1;
            CHECK((plan.workspace_bytes() > 0) == (choice.stream_k || splits_k_in_memory || kernels == 2));
            const auto planned = [&](StreamRef on) {
                plan.launch(on, a.matrix(128, k), b.matrix(k, 64), d.matrix(128, 64));
            };
            const auto planless = [&](StreamRef on) {
                Gemm::launch(on, a.matrix(128, k), b.matrix(k, 64), d.matrix(128, 64));
            };
            planned(stream);
            planless(stream);
            CHECK(allocations_of([&] { planned(stream); }) == 0);
            CHECK(allocations_of([&] { planless(stream); }) == 0);
            CHECK(Graph::capture(stream, planned).node_count() == kernels);
            CHECK(Graph::capture(stream, planless).node_count() == kernels);
            if (Gate::can_be_used()) {
                Gate gate;
                gate.close(stream);
                planned(stream);
                planless(stream);
                CHECK_FALSE(stream.done());
                gate.open();
                stream.synchronize();
                CHECK_FALSE(gate.timed_out());
            }
            ++kinds;
        }
    }
    MESSAGE(kinds, " kinds of configurations for tensor cores on ", device.properties().name);
    GemmPlan::release_workspaces();
}

TEST_CASE("Gemm::launch does not wait for the device")
{
    if (!Gate::can_be_used()) {
        return;
    }
    const Stream stream;
    Operands operands(stream);
    Gate gate;
    gate.close(stream);
    for (const Variant variant : simt_variants()) {
        Gemm::launch(stream, operands.a.matrix(64, 64), operands.b.matrix(64, 64), operands.d.matrix(64, 64), {},
                     variant);
    }
    CHECK_FALSE(stream.done());
    gate.open();
    CHECK(operands.d.to_vector() == std::vector<float>(64 * 64, 64.0F));
    CHECK_FALSE(gate.timed_out());
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
