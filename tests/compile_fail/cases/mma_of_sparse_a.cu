// Without its metadata, a sparse A is another matrix.
// expect: "a sparse instruction needs metadata of A, which mma does not have"
#include "tessera/device/mma.cuh"

using namespace tessera;

using Operand = Tcgen05Descriptor<SharedLayout<Major::k, Swizzle::b128, 128, 64, sizeof(bf16)>>;
constexpr auto start = InstructionDescriptor::builder().shape<128, 128>().a<bf16>().b<bf16>().accumulate<f32>();
#ifdef NEGATIVE
constexpr auto instruction = start.sparse().build();
#else
constexpr auto instruction = start.build();
#endif

__device__ void multiply(const TmemAccumulator<128, CtaGroup::one>& d, Operand a, Operand b)
{
    mma(d, a, b, instruction, Accumulate::add);
}
