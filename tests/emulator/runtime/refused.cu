/// Calls that are not emulated say so by name, and fail. The exit status is the number of calls that did not.

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>

namespace {

template <class Status>
int expect(const char* what, Status got, Status wanted)
{
    if (got != wanted) {
        std::printf("FAILED: %s gave %d\n", what, static_cast<int>(got));
    }
    return got == wanted ? 0 : 1;
}

CUresult encode(CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, void* memory)
{
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    const cuuint64_t extents[] = {64, 64, 64};
    const cuuint64_t strides[] = {128, 8192};
    const cuuint32_t box[] = {16, 8, 1};
    const cuuint32_t steps[] = {1, 1, 1};
    CUtensorMap map;
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
        &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, memory, extents, strides, box, steps, interleave, swizzle,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

}  // namespace

int main()
{
    void* memory = nullptr;
    cudaMalloc(&memory, 64 * 64 * 64 * 2);
    cudaArray_t array = nullptr;
    const cudaChannelFormatDesc format{32, 0, 0, 0, cudaChannelFormatKindFloat};
    int faults = expect("cudaMallocArray", cudaMallocArray(&array, &format, 16), cudaErrorNotSupported);
    faults += expect("last error", cudaGetLastError(), cudaErrorNotSupported);
    faults +=
        expect("no interleave", encode(CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_32B, memory), CUDA_SUCCESS);
    faults += expect("no address yet", encode(CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_32B, nullptr),
                     CUDA_SUCCESS);  // as CUTLASS's grouped GEMMs for Blackwell do
    faults += expect("interleave", encode(CU_TENSOR_MAP_INTERLEAVE_32B, CU_TENSOR_MAP_SWIZZLE_32B, memory),
                     CUDA_ERROR_NOT_SUPPORTED);
    cudaFree(memory);
    return faults;
}
