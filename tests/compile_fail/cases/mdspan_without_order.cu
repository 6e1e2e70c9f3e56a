// Only run time knows which of the two strides is 1; a view's order is a type.
// expect: "tessera: the layout of this mdspan does not say the storage order"
#include "tessera/mdspan.hpp"

using namespace tessera;

using Extents = cuda::std::dextents<int, 2>;
using Strided = cuda::std::mdspan<float, Extents, cuda::std::layout_stride>;

auto view(const Strided& span)
{
#ifdef NEGATIVE
    return from_raw_device_mdspan(span);
#else
    return from_raw_device_mdspan<RowMajor>(span);
#endif
}
