// The tensor core would read columns of the tile as rows.
// expect: "the tile is K-major and the instruction reads it MN-major, or the reverse"
#include "tessera/device/mma.cuh"

using namespace tessera;

using Operand = Tcgen05Descriptor<SharedLayout<Major::k, Swizzle::b128, 128, 64, sizeof(bf16)>>;
constexpr auto start = InstructionDescriptor::builder().shape<128, 128>();
#ifdef NEGATIVE
constexpr auto instruction = start.a<bf16>().b<bf16>().accumulate<f32>().majors<Major::mn, Major::k>().build();
#else
constexpr auto instruction = start.a<bf16>().b<bf16>().accumulate<f32>().build();
#endif

__device__ void multiply(const TmemAccumulator<128, CtaGroup::one>& d, Operand a, Operand b)
{
    mma(d, a, b, instruction, Accumulate::add);
}
