/// The other translation unit.

#include <cstdio>

#include "linked_units.hpp"

__device__ int table[4] = {5, 6, 7, 8};

static __device__ int hidden(int value)
{
    printf("two %d\n", value);
    return value * 2;
}

__device__ int twice(int value) { return hidden(value); }
