#pragma once

/// The choice that the library's tuner makes.

#include <string>

#include "gemm/contender.hpp"

namespace tessera::bench {

/// Where tuned choices come from and go to.
struct Tuning {
    bool measure = false;    ///< tune each problem; else only what is in the file is known
    std::string cache_file;  ///< read before the first problem and, if `measure`, written after each; or empty

    bool wanted() const { return measure || !cache_file.empty(); }
};

/// "tessera_tuned": a plan made from what Gemm::tune has found. What is known is forgotten behind each problem, so that
/// the automatic contender's choice stays the cost model's.
GemmContender tuned_contender(const Tuning& tuning);

}  // namespace tessera::bench
