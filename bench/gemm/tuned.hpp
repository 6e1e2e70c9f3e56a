#pragma once

/// The contender for the tuner's choice.

#include <string>

#include "gemm/contender.hpp"

namespace tessera::bench {

/// Where tuned choices come from and where they are saved.
struct Tuning {
    bool measure = false;    ///< tune each problem; otherwise use only the choices in the file
    std::string cache_file;  ///< read before the first problem and, if `measure`, written after each; may be empty

    bool wanted() const { return measure || !cache_file.empty(); }
};

/// "tessera_tuned": a plan made from the result of Gemm::tune. The choice is forgotten after each problem, so that the
/// automatic contender keeps the cost model's choice.
GemmContender tuned_contender(const Tuning& tuning);

}  // namespace tessera::bench
