#pragma once

// Looks up driver calls in libcuda.so.1, and counts wrong answers.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

inline int failures = 0;

template <class Value>
void expect(const char* what, Value got, Value wanted)
{
    if (got != wanted) {
        std::printf("FAILED: %s gave %lld, not %lld\n", what, static_cast<long long>(got),
                    static_cast<long long>(wanted));
        ++failures;
    }
}

template <class Function>
Function* driver(const char* name)
{
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    void* const function = library == nullptr ? nullptr : dlsym(library, name);
    if (function == nullptr) {
        std::printf("FAILED: libcuda.so.1 has no %s\n", name);
        std::exit(1);
    }
    return reinterpret_cast<Function*>(function);
}

#define DRIVER(name) driver<decltype(name)>(#name)
