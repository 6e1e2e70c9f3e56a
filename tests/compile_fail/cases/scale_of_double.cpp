// A scale is a float on the device: the kernel reads it as one.
// expect g++: "could not convert 'scale' from 'DeviceSpan<const double>' to 'DeviceSpan<const float>'"
// expect clang++: "no viable conversion from 'DeviceSpan<const double>' to 'DeviceSpan<const float>'"
#include "tessera/gemm.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Scale = double;
#else
using Scale = float;
#endif

Epilogue scaled(DeviceSpan<const Scale> scale)
{
    Epilogue epilogue{.scale_a = scale};
    return epilogue;
}
