#pragma once

// Shared by the two translation units of a program with relocatable device code.

extern __device__ int table[4];
__device__ int twice(int value);
