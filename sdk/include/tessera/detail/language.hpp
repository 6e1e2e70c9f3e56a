#pragma once

/// @file
/// @brief Stops with one sentence, instead of many errors, if the compiler is too old or is not set to C++20. Private to
/// the SDK's headers, which include it first.
#if defined(__CUDACC__) && __cplusplus < 202002L
#error "Tessera needs C++20: compile with nvcc -std=c++20, or link tessera::sdk with CMake"
#include "tessera: stopped here, because what follows needs C++20"
#elif __cplusplus < 202002L
#error "Tessera needs C++20: compile with -std=c++20 (g++ 12, clang++ 16 or later) or link tessera::sdk with CMake"
#include "tessera: stopped here, because what follows needs C++20"
#elif defined(__clang__) && !__has_builtin(__builtin_source_location)
#error "Tessera needs std::source_location: g++ 12, clang++ 16 or later"
#include "tessera: stopped here, because what follows needs std::source_location"
#endif
