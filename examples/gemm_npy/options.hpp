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
    std::optional<float> beta;  // 1 with a C and 0 without where it is not given
    int device = 0;
    int repeat = 10;
    bool verify = false;
    std::uint64_t seed = 0;
    bool explain = false;
    /// 10 * major + minor; of a device that need not be present, for `explain`.
    std::optional<int> compute_capability;
};

/// @return the options, or the exit code where the command line asks for help or makes no sense
std::optional<Options> parse_options(int argc, char** argv, int& exit_code);
