#pragma once

/// The command line of gemm_npy.

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/gemm_problem.hpp"

struct Options {
    std::string a;
    std::string b;
    std::string d;  // empty: the product is not stored
    std::string c;
    std::string bias;
    tessera::BiasAxis bias_axis = tessera::BiasAxis::none;
    tessera::Variant variant = tessera::Variant::automatic;
    tessera::ElementType type = tessera::ElementType::f32;
    tessera::ElementType output_type = tessera::ElementType::f32;
    tessera::Activation activation = tessera::Activation::none;
    float alpha = 1.0F;
    std::optional<float> beta;  // not given: 1 with a C, 0 without
    int device = 0;
    int repeat = 10;
    bool verify = false;
    std::uint64_t seed = 0;
    bool explain = false;
    /// 10 * major + minor, for `explain`; the device need not be present.
    std::optional<int> compute_capability;
};

/// @return the options, or the exit code if the command line requests help or is wrong
std::optional<Options> parse_options(int argc, char** argv, int& exit_code);
