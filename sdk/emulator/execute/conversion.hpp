#pragma once

// What the parts of cvt share: modifiers, and the conversion of one element.

#include <optional>

#include "numerics/formats.hpp"
#include "program/decoder.hpp"

namespace tessera::emulator::conversion {

/// Modifiers of one cvt, before its types say which are allowed.
struct Modifiers {
    std::optional<numerics::Rounding> rounding;  ///< .rn .rz .rm .rp .rna
    bool integral = false;                       ///< the rounding was .rni .rzi .rmi .rpi
    bool stochastic = false;                     ///< .rs
    bool ftz = false, sat = false, satfinite = false, relu = false;

    [[nodiscard]] numerics::Conversion conversion() const
    {
        return {rounding.value_or(numerics::Rounding::nearest_even), satfinite, relu, sat};
    }
};

/// @throws DecodeError if `present`
void refuse(const Decoder& decoder, bool present, std::string_view modifier);

/// cvt with packed operands: .f16x2, .e4m3x2, ... `destination` and `source` name the types as in the text.
void decode_packed(Decoder& decoder, Operation& operation, const Modifiers& modifiers, std::string_view destination,
                   std::string_view source);
/// Returns true if only packed conversions have the type `name`.
[[nodiscard]] bool is_packed_type(std::string_view name);
/// cvt.pack.
void decode_pack(Decoder& decoder, Operation& operation);

}  // namespace tessera::emulator::conversion
