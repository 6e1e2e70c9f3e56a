#pragma once

/// Random operands, the float64 reference, and the comparison with it, all on the device.
///
/// Each function enqueues one kernel and does not wait. @throws std::runtime_error if it cannot be launched

#include <cstdint>

#include "support/error_bound.hpp"
#include "support/host_matrix.hpp"
#include "tessera/element.hpp"
#include "tessera/epilogue_kind.hpp"
#include "tessera/stream.hpp"

namespace tessera::test {

/// Device memory with elements of a type that is known at run time.
struct DeviceArray {
    void* data = nullptr;
    ElementType type = ElementType::f32;
    std::int64_t size = 0;  // in elements
};

/// A matrix or batch in such an array.
struct PlacedMatrix {
    DeviceArray array;
    Placement place;
};

enum class Fault : unsigned {
    none = 0,
    wrong = 1,       ///< an element differs from the reference by more than its bound
    unwritten = 2,   ///< an element was never written
    outside = 3,     ///< memory before, after or between the elements was overwritten
    other_bits = 4,  ///< the same product gave other bits
};

/// The first fault that a kernel found.
struct Finding {
    unsigned fault = 0;
    std::int64_t element = 0;  ///< its index in the array
    double actual = 0;
    double expected = 0;
    double error = 0;  ///< the bound
};

/// Everything that D depends on, and how exact it must be.
struct Expectation {
    const SumOfProducts* sums = nullptr;  ///< (batches, m, columns)
    std::int64_t columns = 0;             ///< of A * B
    std::int64_t depth = 0;               ///< products per sum
    double relative_error = 0;            ///< of a sum, as a fraction of its magnitude
    double smallest_error = eta_f32;      ///< of each product, if it is tiny
    float alpha = 1;                      ///< times the scales of A and B
    float beta = 0;
    PlacedMatrix c;  ///< read if beta is not 0
    DeviceArray bias;
    BiasAxis axis = BiasAxis::none;
    Activation activation = Activation::none;
    Gating gating = Gating::none;
    float scale_d = 1;
};

/// Fills the array with random numbers between -1 and 1.
void fill_random(StreamRef stream, const DeviceArray& array, std::uint64_t seed);

/// Fills the array with poison, and then the elements of `place` with those of `source`, if it has data.
void prepare_output(StreamRef stream, const DeviceArray& array, const Placement& place, const PlacedMatrix& source);

/// Sums the products of every element: sums (batches, m, n), in float64. `depth` is at most k.
void sum_products(StreamRef stream, const PlacedMatrix& a, const PlacedMatrix& b, std::int64_t depth,
                  SumOfProducts* sums);

/// Compares each element of D with its reference, and everything else with poison.
void check_output(StreamRef stream, const PlacedMatrix& d, const Expectation& expectation, Finding* finding);

/// Compares two arrays bit by bit.
void compare_bits(StreamRef stream, const DeviceArray& first, const DeviceArray& second, Finding* finding);

/// Damages a result, to test the two functions above: sets an element of D, by its number in (batches, rows, columns), to a value
/// that is just outside of its bound.
void nudge_element(StreamRef stream, const PlacedMatrix& d, const Expectation& expectation, std::int64_t element);
/// Exchanges the lowest bit of an element of the array.
void flip_bit(StreamRef stream, const DeviceArray& array, std::int64_t index);
/// Makes an element of the array poison.
void poison_element(StreamRef stream, const DeviceArray& array, std::int64_t index);

}  // namespace tessera::test
