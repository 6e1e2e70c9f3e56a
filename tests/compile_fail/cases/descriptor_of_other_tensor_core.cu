// The two encodings differ in the swizzle's code; the kernel would silently read wrong elements.
// expect: "no instance of overloaded function "mma" matches the argument list"
#include "tessera/device/mma.cuh"

using namespace tessera;

using Layout = SharedLayout<Major::k, Swizzle::b128, 128, 64, 2>;

__global__ void kernel()
{
    __shared__ TmemSlot slot;
    auto memory = Tmem<Unallocated, 128, CtaGroup::one>(slot).allocate(threadIdx.x < 32);
    constexpr auto instruction =
        InstructionDescriptor::builder().shape<128, 128>().a<f16>().b<f16>().accumulate<f32>().build();
#ifdef NEGATIVE
    const auto a = wgmma_descriptor<Layout>(0x400);
#else
    const auto a = tcgen05_descriptor<Layout>(0x400);
#endif
    mma(memory.accumulator<128>(0), a, tcgen05_descriptor<Layout>(0x4400), instruction, Accumulate::overwrite);
    std::move(memory).release(threadIdx.x < 32);
}
