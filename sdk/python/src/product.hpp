#pragma once

/// One product as the library takes it: operands with batches in two levels, the epilogue, and D.

#include <nanobind/nanobind.h>

#include <vector>

#include "operand.hpp"
#include "tessera.h"

namespace tessera::python {

/// What `tessera.gemm` and its relatives are called with; None where nothing was passed.
struct Arguments {
    nanobind::handle a, b, out, out_dtype, alpha, beta, c, bias, activation, scale_a, scale_b, scale_d, amax_d, gating,
        pre_activation, tf32, fp8_accumulation, f16_accumulation, variant, workspace_limit, stream;
    bool transpose_a = false;      ///< A is passed as (..., k, m)
    bool transpose_b = false;      ///< B is passed as (..., n, k), as the weights of a layer are
    bool allow_gradients = false;  ///< the caller computes gradients itself

    Arguments();
    /// Adds keyword arguments. Raises TypeError for a name that is not among them.
    void take(nanobind::handle keywords, const char* function);
};

/// Reads and holds what a launch needs. Not movable: the epilogue points into it.
class Product {
public:
    enum class Use { launch, description };

    /// Reads all operands and derives D's shape. With `description`, A and B may be shapes, and D is not needed.
    Product(const Arguments& arguments, Use use);
    Product(const Product&) = delete;
    Product& operator=(const Product&) = delete;

    /// Allocates D unless it was passed; then launches, with a plan if there is one. Returns D as the caller's kind of array.
    nanobind::object launch(const tessera_plan* plan, const char* function);

    const tessera_matrix& a() const { return a_; }
    const tessera_matrix& b() const { return b_; }
    const tessera_matrix& d() const { return d_; }
    const tessera_epilogue* epilogue() const { return &epilogue_; }
    const tessera_options& options() const { return options_; }
    int device() const { return operand_a_.device; }

private:
    struct Batch;  // dimensions of all operands before the last two

    void read_modes(const Arguments& arguments);
    void read_vectors(const Arguments& arguments, Reader& reader);
    tessera_vector vector_of(const char* name, nanobind::handle object, Reader& reader, bool* is_per_row = nullptr);
    void derive_shape();
    void fit_batches();
    void make_output(void** data);
    nanobind::object finished(nanobind::handle first);

    Reader reader_;
    Arguments arguments_;
    Operand operand_a_, operand_b_, operand_c_, operand_d_, operand_x_;
    std::vector<nanobind::object> owners_;
    std::vector<std::int64_t> shape_;  // of D
    tessera_element_type out_type_ = TESSERA_F32;
    bool gated_ = false;
    float alpha_ = 1;
    float beta_ = 1;
    tessera_matrix a_{}, b_{}, c_{}, d_{}, x_{};
    tessera_epilogue epilogue_{};
    tessera_options options_{};
    // D, where it is made here: of the framework's allocator, or an array.
    dlpack::ManagedTensorVersioned* managed_ = nullptr;
    Array array_;
    nanobind::object out_;
};

}  // namespace tessera::python
