#pragma once

#include <cstdint>

/// The `.approx` and `.full` instructions of PTX (PTX ISA 9.7.3 and 9.7.4). Computed in double and rounded once to
/// nearest, with the special cases of the ISA's tables. The results are within the documented errors, but are not the
/// bits of any chip, which differ between generations. `ftz` flushes subnormal inputs and results to zero of the same
/// sign. NaN results are canonical.
namespace tessera::emulator::numerics {

float rcp_approx(float a, bool ftz);
float sqrt_approx(float a, bool ftz);
float rsqrt_approx(float a, bool ftz);
float sin_approx(float a, bool ftz);
float cos_approx(float a, bool ftz);
float lg2_approx(float a, bool ftz);
float ex2_approx(float a, bool ftz);
float tanh_approx(float a);

/// `div.approx.f32`, a * (1/b): for |b| in (2^126, 2^128) the result is 0, and NaN if a is infinite.
float div_approx(float a, float b, bool ftz);
/// `div.full.f32`: like div_approx with b scaled, so that every b works.
float div_full(float a, float b, bool ftz);

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: only the upper 32 bits of the input are read, and the lower 32 bits
/// of the result are 0.
double rcp_approx_ftz(double a);
double rsqrt_approx_ftz(double a);
/// `rsqrt.approx.f64`.
double rsqrt_approx(double a);

// 16-bit forms on codes.
std::uint16_t ex2_approx_f16(std::uint16_t a, bool ftz);
std::uint16_t tanh_approx_f16(std::uint16_t a);
/// `ex2.approx.ftz.bf16`; subnormal inputs and results become zero.
std::uint16_t ex2_approx_bf16(std::uint16_t a);
std::uint16_t tanh_approx_bf16(std::uint16_t a);

}  // namespace tessera::emulator::numerics
