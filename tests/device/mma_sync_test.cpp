/// mma.sync and ldmatrix of the device layer: every type, K, major and swizzle, compared with exact products, on whatever device
/// there is: what it does not have is left out.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "device_fixture.hpp"
#include "mma_sync_kernels.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

template <class T>
std::vector<T> small_integers(std::mt19937_64& engine, std::size_t elements)
{
    std::vector<T> matrix(elements);
    for (T& element : matrix) {
        element = T(static_cast<float>(static_cast<int>(engine() % 9) - 4));
    }
    return matrix;
}

/// Returns how many elements are wrong.
template <class A, class B, class D, unsigned K, Major MajorAxis, Swizzle Pattern>
std::size_t wrong_elements(std::mt19937_64& engine)
{
    const Stream stream;
    const auto a = small_integers<A>(engine, std::size_t{mma_m} * mma_k<A>);
    const auto b = small_integers<B>(engine, std::size_t{mma_n} * mma_k<B>);
    const auto device_a = DeviceBuffer<A>::from_host(stream, a);
    const auto device_b = DeviceBuffer<B>::from_host(stream, b);
    auto d = DeviceBuffer<D>::from_host(stream, std::vector<D>(std::size_t{mma_m} * mma_n, D(-10000.0F)));
    launch(mma_sync_kernel<A, B, D, K, MajorAxis, Pattern>(), LaunchConfig(stream, {1}, {32}), device_a.span(),
           device_b.span(), d.span());
    const auto found = d.to_vector();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        float sum = 0;
        for (std::size_t k = 0; k < mma_k<A>; ++k) {
            sum += static_cast<float>(a[i / mma_n * mma_k<A> + k]) * static_cast<float>(b[i % mma_n * mma_k<A> + k]);
        }
        wrong += static_cast<float>(found[i]) == sum ? 0U : 1U;
    }
    return wrong;
}

template <class A, class B, class D, unsigned K, Major MajorAxis>
void check_swizzles(std::mt19937_64& engine)
{
    CHECK(wrong_elements<A, B, D, K, MajorAxis, Swizzle::none>(engine) == 0);
    CHECK(wrong_elements<A, B, D, K, MajorAxis, Swizzle::b128>(engine) == 0);
}

int capability()
{
    const DeviceProperties& device = Device::current().properties();
    return 10 * device.compute_capability_major + device.compute_capability_minor;
}

}  // namespace

TEST_CASE("f16 with K = 8, in both majors, with sums in f32 and f16")
{
    std::mt19937_64 engine = random_engine(21);
    check_swizzles<f16, f16, float, 8, Major::k>(engine);
    check_swizzles<f16, f16, float, 8, Major::mn>(engine);
    check_swizzles<f16, f16, f16, 8, Major::k>(engine);
}

TEST_CASE("f16 with K = 16, bf16 and tf32")
{
    if (capability() < 80) {
        MESSAGE("skipped: the device does not have compute capability 8.0");
        return;
    }
    std::mt19937_64 engine = random_engine(22);
    check_swizzles<f16, f16, float, 16, Major::k>(engine);
    check_swizzles<f16, f16, float, 16, Major::mn>(engine);
    check_swizzles<f16, f16, f16, 16, Major::k>(engine);
    check_swizzles<bf16, bf16, float, 16, Major::k>(engine);
    check_swizzles<bf16, bf16, float, 16, Major::mn>(engine);
    check_swizzles<tf32, tf32, float, 8, Major::k>(engine);
}

TEST_CASE("8-bit floats, mixed")
{
    if (capability() < 89) {
        MESSAGE("skipped: the device does not have compute capability 8.9");
        return;
    }
    std::mt19937_64 engine = random_engine(23);
    check_swizzles<f8e4m3, f8e4m3, float, 32, Major::k>(engine);
    check_swizzles<f8e4m3, f8e5m2, float, 32, Major::k>(engine);
    check_swizzles<f8e5m2, f8e4m3, float, 32, Major::k>(engine);
    check_swizzles<f8e5m2, f8e5m2, float, 32, Major::k>(engine);
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
