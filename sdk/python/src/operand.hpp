#pragma once

/// What a caller passes as a matrix or vector, read as address, type, shape and strides: by the framework's function table,
/// by DLPack, or by the CUDA array interface.

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>

#include "array.hpp"
#include "dlpack.hpp"
#include "tessera.h"

namespace tessera::python {

/// How a Python type shows its memory.
struct Source {
    PyTypeObject* type = nullptr;
    const dlpack::ExchangeApi* api = nullptr;  ///< null: no function table
    bool is_array = false;                     ///< tessera.Array
    bool is_torch = false;
    bool is_cupy = false;
};

/// Looks a type up. The answer is kept for the process.
const Source& source_of(nanobind::handle object);

struct Operand {
    static constexpr int max_dimensions = 8;

    const char* name = "";
    void* data = nullptr;
    tessera_element_type type = TESSERA_F32;
    int device = -1;
    int ndim = 0;
    std::array<std::int64_t, max_dimensions> shape{};
    std::array<std::int64_t, max_dimensions> strides{};  ///< in elements
    bool writable = true;
    nanobind::object owner;  ///< keeps memory alive that was exported for this call

    bool exists() const { return ndim >= 0 && name[0] != '\0'; }
};

/// Collects the operands of one call, and the stream that it runs on.
///
/// The stream is the one that the caller names; otherwise the current stream of the first operand's framework, as PyTorch's
/// function table or CuPy tells it, or the stream of a tessera.Array, or the legacy default stream. Operands that are ready on another stream make this one wait.
class Reader {
public:
    /// @param stream  None, or what the caller passed as `stream`
    /// @param first   the operand that decides on the framework and the stream
    Reader(nanobind::handle stream, nanobind::handle first);

    /// Reads an operand. `name` is used in errors: "A", "the bias".
    Operand read(const char* name, nanobind::handle object);
    /// Reads one whose elements need not be those of matrices; `type` receives what they are.
    Operand read_of_any_type(const char* name, nanobind::handle object, dlpack::DataType& type);

    tessera_stream stream() const { return stream_; }
    const Source& source() const { return source_; }

    /// Orders what the operands' owners do next after the work of this call.
    void finish();

private:
    void decide_stream(int device);
    void read_tensor(Operand& operand, const dlpack::Tensor& tensor);
    void read_exported(Operand& operand, nanobind::handle object);
    void read_interface(Operand& operand, nanobind::handle object);
    void wait_for(tessera_stream other);
    void exchange_with(tessera_stream other);

    Source source_;
    nanobind::handle first_;
    bool is_decided_ = false;
    tessera_stream stream_ = nullptr;
    int device_ = -1;
    std::array<tessera_stream, 16> others_{};  // on which operands were ready, and will be used or freed
    std::size_t other_count_ = 0;
    dlpack::DataType* any_type_ = nullptr;  // receives the type of the operand that is read, which may be any
};

/// Reads a stream: None, an int (1: legacy default, 2: per thread), or an object of torch, CuPy, numba or cuda.core.
tessera_stream stream_of(nanobind::handle stream);
/// The number that DLPack and the CUDA array interface have for a stream.
std::uintptr_t number_of(tessera_stream stream);

}  // namespace tessera::python
