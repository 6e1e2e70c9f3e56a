// Copies and fills.

#include <cuda_runtime_api.h>

#include "runtime/call.hpp"
#include "runtime/kernels.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream_work.hpp"

using namespace tessera::emulator;

namespace {

constexpr cudaStream_t legacy = nullptr;

CopyWork make_2d(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                 std::size_t height, cudaMemcpyKind kind)
{
    CopyWork work = make_copy(to, from, width, kind);
    work.to_pitch = to_pitch;
    work.from_pitch = from_pitch;
    work.height = height;
    work.parameters.dstPtr = {to, to_pitch, width, height};
    work.parameters.srcPtr = {const_cast<void*>(from), from_pitch, width, height};
    work.parameters.extent = {width, height, 1};
    return work;
}

cudaError_t copy_2d(const char* name, const CopyWork& work, cudaStream_t stream, bool is_synchronous)
{
    return call(name, [&]() -> cudaError_t {
        if (work.width > work.to_pitch || work.width > work.from_pitch) {
            return cudaErrorInvalidPitchValue;
        }
        return copy(name, work, stream, is_synchronous);
    });
}

cudaError_t copy_3d(const char* name, const cudaMemcpy3DParms* parameters, cudaStream_t stream, bool is_synchronous)
{
    return call(name, [&]() -> cudaError_t {
        if (parameters == nullptr) {
            return cudaErrorInvalidValue;
        }
        CopyWork work;
        const cudaError_t status = make_copy(*parameters, work);
        return status != cudaSuccess ? status : copy(name, work, stream, is_synchronous);
    });
}

cudaError_t copy_3d_peer(const char* name, const cudaMemcpy3DPeerParms* peer, cudaStream_t stream, bool is_synchronous)
{
    if (peer == nullptr) {
        return copy_3d(name, nullptr, stream, is_synchronous);
    }
    const cudaMemcpy3DParms parameters{.srcArray = peer->srcArray,
                                       .srcPos = peer->srcPos,
                                       .srcPtr = peer->srcPtr,
                                       .dstArray = peer->dstArray,
                                       .dstPos = peer->dstPos,
                                       .dstPtr = peer->dstPtr,
                                       .extent = peer->extent,
                                       .kind = cudaMemcpyDefault};
    return copy_3d(name, &parameters, stream, is_synchronous);
}

/// The address of byte `offset` of a symbol; `count` bytes from there must be in bounds.
cudaError_t symbol_range(const void* symbol, std::size_t count, std::size_t offset, void*& address)
{
    VariableInfo variable;
    {
        const std::scoped_lock lock(Runtime::get().mutex);
        if (const cudaError_t status = find_symbol(symbol, current_device(), variable); status != cudaSuccess) {
            return status;
        }
    }
    if (offset > variable.size || count > variable.size - offset) {
        return cudaErrorInvalidValue;
    }
    address = reinterpret_cast<void*>(variable.address + offset);
    return cudaSuccess;
}

cudaError_t copy_to_symbol(const char* name, const void* symbol, const void* from, std::size_t count,
                           std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream, bool is_synchronous)
{
    return call(name, [&]() -> cudaError_t {
        if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) {
            return cudaErrorInvalidMemcpyDirection;
        }
        void* to = nullptr;
        const cudaError_t status = symbol_range(symbol, count, offset, to);
        return status != cudaSuccess ? status : copy(name, make_copy(to, from, count, kind), stream, is_synchronous);
    });
}

cudaError_t copy_from_symbol(const char* name, void* to, const void* symbol, std::size_t count, std::size_t offset,
                             cudaMemcpyKind kind, cudaStream_t stream, bool is_synchronous)
{
    return call(name, [&]() -> cudaError_t {
        if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) {
            return cudaErrorInvalidMemcpyDirection;
        }
        void* from = nullptr;
        const cudaError_t status = symbol_range(symbol, count, offset, from);
        return status != cudaSuccess ? status : copy(name, make_copy(to, from, count, kind), stream, is_synchronous);
    });
}

cudaError_t copy_1d(const char* name, void* to, const void* from, std::size_t count, cudaMemcpyKind kind,
                    cudaStream_t stream, bool is_synchronous)
{
    return call(name, [&] { return copy(name, make_copy(to, from, count, kind), stream, is_synchronous); });
}

cudaError_t copy_peer(const char* name, void* to, int to_device, const void* from, int from_device, std::size_t count,
                      cudaStream_t stream, bool is_synchronous)
{
    return call(name, [&]() -> cudaError_t {
        if (find_device(to_device) == nullptr || find_device(from_device) == nullptr) {
            return cudaErrorInvalidDevice;
        }
        return copy(name, make_copy(to, from, count, cudaMemcpyDefault), stream, is_synchronous);
    });
}

cudaError_t fill_bytes(const char* name, void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                       std::size_t depth, std::size_t slice, cudaStream_t stream, bool is_synchronous)
{
    return call(name, [&] {
        return fill(name,
                    {.to = static_cast<std::byte*>(to),
                     .value = static_cast<unsigned>(value) & 0xFFU,
                     .element_size = 1,
                     .width = width,
                     .height = height,
                     .depth = depth,
                     .pitch = pitch,
                     .slice = slice},
                    stream, is_synchronous);
    });
}

cudaError_t fill_3d(const char* name, const cudaPitchedPtr& to, int value, const cudaExtent& extent,
                    cudaStream_t stream, bool is_synchronous)
{
    return fill_bytes(name, to.ptr, to.pitch, value, extent.width, extent.height, extent.depth, to.pitch * to.ysize,
                      stream, is_synchronous);
}

/// The copies in order. Each has the attributes of the last entry of `first_copies` not after it.
cudaError_t copy_batch(void* const* to, const void* const* from, const std::size_t* sizes, std::size_t count,
                       const cudaMemcpyAttributes* attributes, const std::size_t* first_copies,
                       std::size_t attribute_count, cudaStream_t stream)
{
    constexpr const char* name = "cudaMemcpyBatchAsync";
    return call(name, [&]() -> cudaError_t {
        const bool is_legacy = stream == legacy || stream == cudaStreamLegacy;
        if (to == nullptr || from == nullptr || sizes == nullptr || attributes == nullptr || first_copies == nullptr ||
            is_legacy || count == 0 || attribute_count == 0 || attribute_count > count || first_copies[0] != 0) {
            return cudaErrorInvalidValue;
        }
        for (std::size_t i = 0; i < attribute_count; ++i) {
            const bool rises = i == 0 || first_copies[i] > first_copies[i - 1];
            if (!rises || first_copies[i] >= count || attributes[i].srcAccessOrder < cudaMemcpySrcAccessOrderStream ||
                attributes[i].srcAccessOrder > cudaMemcpySrcAccessOrderAny) {
                return cudaErrorInvalidValue;
            }
        }
        std::size_t which = 0;
        for (std::size_t i = 0; i < count; ++i) {
            which += which + 1 < attribute_count && first_copies[which + 1] == i ? 1 : 0;
            const bool at_once = attributes[which].srcAccessOrder == cudaMemcpySrcAccessOrderDuringApiCall;
            if (const cudaError_t status =
                    copy(name, make_copy(to[i], from[i], sizes[i], cudaMemcpyDefault), stream, at_once);
                status != cudaSuccess) {
                return status;
            }
        }
        return cudaSuccess;
    });
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, size_t count, cudaMemcpyKind kind)
{
    return copy_1d("cudaMemcpy", to, from, count, kind, legacy, true);
}
cudaError_t cudaMemcpy_ptds(void* to, const void* from, size_t count, cudaMemcpyKind kind)
{
    return copy_1d("cudaMemcpy", to, from, count, kind, cudaStreamPerThread, true);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t count, cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_1d("cudaMemcpyAsync", to, from, count, kind, stream, false);
}
cudaError_t cudaMemcpyAsync_ptsz(void* to, const void* from, size_t count, cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_1d("cudaMemcpyAsync", to, from, count, kind, per_thread(stream), false);
}
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t count)
{
    return copy_peer("cudaMemcpyPeer", to, to_device, from, from_device, count, legacy, true);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t count,
                                cudaStream_t stream)
{
    return copy_peer("cudaMemcpyPeerAsync", to, to_device, from, from_device, count, stream, false);
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind)
{
    return copy_2d("cudaMemcpy2D", make_2d(to, to_pitch, from, from_pitch, width, height, kind), legacy, true);
}
cudaError_t cudaMemcpy2D_ptds(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind)
{
    return copy_2d("cudaMemcpy2D", make_2d(to, to_pitch, from, from_pitch, width, height, kind), cudaStreamPerThread,
                   true);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_2d("cudaMemcpy2DAsync", make_2d(to, to_pitch, from, from_pitch, width, height, kind), stream, false);
}
cudaError_t cudaMemcpy2DAsync_ptsz(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                   size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_2d("cudaMemcpy2DAsync", make_2d(to, to_pitch, from, from_pitch, width, height, kind),
                   per_thread(stream), false);
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters)
{
    return copy_3d("cudaMemcpy3D", parameters, legacy, true);
}
cudaError_t cudaMemcpy3D_ptds(const cudaMemcpy3DParms* parameters)
{
    return copy_3d("cudaMemcpy3D", parameters, cudaStreamPerThread, true);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream)
{
    return copy_3d("cudaMemcpy3DAsync", parameters, stream, false);
}
cudaError_t cudaMemcpy3DAsync_ptsz(const cudaMemcpy3DParms* parameters, cudaStream_t stream)
{
    return copy_3d("cudaMemcpy3DAsync", parameters, per_thread(stream), false);
}
cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* parameters)
{
    return copy_3d_peer("cudaMemcpy3DPeer", parameters, legacy, true);
}
cudaError_t cudaMemcpy3DPeer_ptds(const cudaMemcpy3DPeerParms* parameters)
{
    return copy_3d_peer("cudaMemcpy3DPeer", parameters, cudaStreamPerThread, true);
}
cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* parameters, cudaStream_t stream)
{
    return copy_3d_peer("cudaMemcpy3DPeerAsync", parameters, stream, false);
}
cudaError_t cudaMemcpy3DPeerAsync_ptsz(const cudaMemcpy3DPeerParms* parameters, cudaStream_t stream)
{
    return copy_3d_peer("cudaMemcpy3DPeerAsync", parameters, per_thread(stream), false);
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t count, size_t offset, cudaMemcpyKind kind)
{
    return copy_to_symbol("cudaMemcpyToSymbol", symbol, from, count, offset, kind, legacy, true);
}
cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* from, size_t count, size_t offset,
                                    cudaMemcpyKind kind)
{
    return copy_to_symbol("cudaMemcpyToSymbol", symbol, from, count, offset, kind, cudaStreamPerThread, true);
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t count, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_to_symbol("cudaMemcpyToSymbolAsync", symbol, from, count, offset, kind, stream, false);
}
cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void* symbol, const void* from, size_t count, size_t offset,
                                         cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_to_symbol("cudaMemcpyToSymbolAsync", symbol, from, count, offset, kind, per_thread(stream), false);
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind)
{
    return copy_from_symbol("cudaMemcpyFromSymbol", to, symbol, count, offset, kind, legacy, true);
}
cudaError_t cudaMemcpyFromSymbol_ptds(void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind)
{
    return copy_from_symbol("cudaMemcpyFromSymbol", to, symbol, count, offset, kind, cudaStreamPerThread, true);
}
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream)
{
    return copy_from_symbol("cudaMemcpyFromSymbolAsync", to, symbol, count, offset, kind, stream, false);
}
cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void* to, const void* symbol, size_t count, size_t offset,
                                           cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_from_symbol("cudaMemcpyFromSymbolAsync", to, symbol, count, offset, kind, per_thread(stream), false);
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol)
{
    return call("cudaGetSymbolAddress", [&]() -> cudaError_t {
        return pointer == nullptr ? cudaErrorInvalidValue : symbol_range(symbol, 0, 0, *pointer);
    });
}

cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol)
{
    return call("cudaGetSymbolSize", [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        VariableInfo variable;
        const cudaError_t status =
            size == nullptr ? cudaErrorInvalidValue : find_symbol(symbol, current_device(), variable);
        if (status == cudaSuccess) {
            *size = variable.size;
        }
        return status;
    });
}

cudaError_t cudaMemset(void* to, int value, size_t count)
{
    return fill_bytes("cudaMemset", to, count, value, count, 1, 1, count, legacy, true);
}
cudaError_t cudaMemset_ptds(void* to, int value, size_t count)
{
    return fill_bytes("cudaMemset", to, count, value, count, 1, 1, count, cudaStreamPerThread, true);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t count, cudaStream_t stream)
{
    return fill_bytes("cudaMemsetAsync", to, count, value, count, 1, 1, count, stream, false);
}
cudaError_t cudaMemsetAsync_ptsz(void* to, int value, size_t count, cudaStream_t stream)
{
    return fill_bytes("cudaMemsetAsync", to, count, value, count, 1, 1, count, per_thread(stream), false);
}
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height)
{
    return fill_bytes("cudaMemset2D", to, pitch, value, width, height, 1, 0, legacy, true);
}
cudaError_t cudaMemset2D_ptds(void* to, size_t pitch, int value, size_t width, size_t height)
{
    return fill_bytes("cudaMemset2D", to, pitch, value, width, height, 1, 0, cudaStreamPerThread, true);
}
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
    return fill_bytes("cudaMemset2DAsync", to, pitch, value, width, height, 1, 0, stream, false);
}
cudaError_t cudaMemset2DAsync_ptsz(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
    return fill_bytes("cudaMemset2DAsync", to, pitch, value, width, height, 1, 0, per_thread(stream), false);
}
cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent)
{
    return fill_3d("cudaMemset3D", to, value, extent, legacy, true);
}
cudaError_t cudaMemset3D_ptds(cudaPitchedPtr to, int value, cudaExtent extent)
{
    return fill_3d("cudaMemset3D", to, value, extent, cudaStreamPerThread, true);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream)
{
    return fill_3d("cudaMemset3DAsync", to, value, extent, stream, false);
}
cudaError_t cudaMemset3DAsync_ptsz(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream)
{
    return fill_3d("cudaMemset3DAsync", to, value, extent, per_thread(stream), false);
}

cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes, size_t count,
                                 cudaMemcpyAttributes* attributes, size_t* first_copies, size_t attribute_count,
                                 cudaStream_t stream)
{
    return copy_batch(to, from, sizes, count, attributes, first_copies, attribute_count, stream);
}
cudaError_t cudaMemcpyBatchAsync_ptsz(void* const* to, const void* const* from, const size_t* sizes, size_t count,
                                      cudaMemcpyAttributes* attributes, size_t* first_copies, size_t attribute_count,
                                      cudaStream_t stream)
{
    return copy_batch(to, from, sizes, count, attributes, first_copies, attribute_count, per_thread(stream));
}

}  // extern "C"
