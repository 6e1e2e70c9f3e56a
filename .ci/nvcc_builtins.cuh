#pragma once

/// What nvcc knows without a header and clang does not: for .ci/lint_device only.

enum { __NV_ATOMIC_RELAXED, __NV_ATOMIC_CONSUME, __NV_ATOMIC_ACQUIRE, __NV_ATOMIC_RELEASE, __NV_ATOMIC_ACQ_REL };
enum { __NV_THREAD_SCOPE_DEVICE };
template <class T>
__device__ T __nv_atomic_load_n(T* object, int order, int scope);
template <class T>
__device__ void __nv_atomic_store_n(T* object, T value, int order, int scope);
template <class T>
__device__ T __nv_atomic_fetch_add(T* object, T value, int order, int scope);
__device__ float2 __fadd2_rn(float2 one, float2 other);
__device__ float2 __fmul2_rn(float2 one, float2 other);
