#pragma once

namespace tessera::distributed::detail {

/// Ranks that exchange data with each other: all of a communicator, or a row or a column of their grid.
struct Line {
    int ranks = 1;   ///< how many there are
    int rank = 0;    ///< which of them this one is
    int first = 0;   ///< number of the first one in the communicator
    int stride = 1;  ///< between their numbers in the communicator

    /// Returns the number in the communicator.
    int number_of(int place) const noexcept { return first + place * stride; }
};

}  // namespace tessera::distributed::detail
