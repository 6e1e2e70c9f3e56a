// Four threads share one plan. Each has its own stream and buffers, and launches without a lock.
#include <tessera/tessera.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "common/exact_sum.hpp"
#include "common/run_example.hpp"

using namespace tessera;

namespace {

constexpr std::size_t m = 96, n = 80, k = 64;
constexpr unsigned threads = 4;
constexpr int launches = 8;

/// One thread's work. Returns how many elements are wrong.
std::size_t multiply(const GemmPlan& plan, unsigned seed)
{
    const auto a = examples::random_values<f16>(m * k, 2 * seed);
    const auto b = examples::random_values<f16>(k * n, 2 * seed + 1);
    const Stream stream;
    const auto device_a = DeviceBuffer<f16>::from_host(stream, a);
    const auto device_b = DeviceBuffer<f16>::from_host(stream, b);
    DeviceBuffer<float> device_d(stream, m * n);

    std::size_t wrong = 0;
    for (int i = 0; i < launches; ++i) {
        device_d.fill(stream, -1.0F);  // overwrites the previous launch's result
        plan.launch(stream, device_a.matrix(m, k), device_b.matrix(k, n), device_d.matrix(m, n));
        const auto d = device_d.to_vector();
        for (std::size_t element = 0; element < d.size(); ++element) {
            examples::ExactSum sum;
            for (std::size_t j = 0; j < k; ++j) {
                sum.add(double{float(a[element / n * k + j])} * double{float(b[j * n + element % n])});
            }
            wrong += sum.allows(double{d[element]}, ElementType::f32) ? 0 : 1;
        }
    }
    return wrong;
}

int run()
{
    const auto plan = GemmPlan::prepare(
        Device::current(), {.m = m, .n = n, .k = k, .input = ElementType::f16, .output = ElementType::f32});
    std::atomic<std::size_t> wrong = 0;
    std::atomic<bool> failed = false;
    {
        std::vector<std::jthread> workers;
        for (unsigned thread = 0; thread < threads; ++thread) {
            workers.emplace_back([&, thread] {
                try {
                    wrong += multiply(plan, thread);
                } catch (const Error& error) {
                    std::fprintf(stderr, "%s\n", error.what());
                    failed = true;
                }
            });
        }
    }  // joined
    std::printf("threads: %u threads, %d products each, %zu elements are wrong\n", threads, launches, wrong.load());
    return wrong == 0 && !failed ? examples::exit_success : examples::exit_failure;
}

}  // namespace

int main() { return examples::run_example("threads", run); }
