#include "product.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "elements.hpp"
#include "errors.hpp"
#include "workspace.hpp"

namespace nb = nanobind;

namespace tessera::python {
namespace {

std::string_view text_of(nb::handle object, const char* what)
{
    if (!nb::isinstance<nb::str>(object)) {
        raise("invalid_argument", std::string(what) + " is no text", std::string("a str, or None"));
    }
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
    return {text, static_cast<std::size_t>(size)};
}

/// Returns the number of a name. None is 0.
template <std::size_t Count>
std::int32_t number_of(nb::handle object, const char* what, const std::array<const char*, Count>& names)
{
    if (object.is_none()) {
        return 0;
    }
    const std::string_view text = text_of(object, what);
    for (std::size_t i = 0; i < Count; ++i) {
        if (text == names[i]) {
            return static_cast<std::int32_t>(i);
        }
    }
    std::string all;
    for (const char* const name : names) {
        all += (all.empty() ? "" : ", ") + std::string(name);
    }
    raise("invalid_argument", "'" + std::string(text) + "' is no " + what, all);
}

constexpr std::array activations{"none", "relu", "gelu", "silu", "gelu_tanh", "sigmoid", "tanh"};
constexpr std::array gatings{"none", "interleaved", "side_by_side"};
constexpr std::array fp8_sums{"two_level", "fast"};
constexpr std::array f16_sums{"in_f32", "in_f16"};

float number_of(nb::handle object, const char* name)
{
    const double value = PyFloat_AsDouble(object.ptr());
    if (value == -1.0 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        raise("invalid_argument", std::string(name) + " is no number",
              "a number of Python; scales of the device are scale_a and scale_b");
    }
    return static_cast<float>(value);
}

std::int64_t rows_of(const Operand& operand) { return operand.shape[static_cast<std::size_t>(operand.ndim - 2)]; }
std::int64_t columns_of(const Operand& operand) { return operand.shape[static_cast<std::size_t>(operand.ndim - 1)]; }
std::int64_t row_stride_of(const Operand& operand)
{
    return operand.strides[static_cast<std::size_t>(operand.ndim - 2)];
}
std::int64_t column_stride_of(const Operand& operand)
{
    return operand.strides[static_cast<std::size_t>(operand.ndim - 1)];
}

std::string text_of(const Operand& operand) { return shape_text(operand.ndim, operand.shape.data()); }

void require_matrix(const Operand& operand)
{
    if (operand.ndim < 2) {
        raise("shape_mismatch",
              std::string(operand.name) + " has " + std::to_string(operand.ndim) + " dimension" +
                  (operand.ndim == 1 ? "" : "s"),
              "two or more: rows, columns, and batches before them; a vector v is a row as v[None, :] and a column as "
              "v[:, None]");
    }
}

void transpose(Operand& operand)
{
    const auto last = static_cast<std::size_t>(operand.ndim - 1);
    std::swap(operand.shape[last], operand.shape[last - 1]);
    std::swap(operand.strides[last], operand.strides[last - 1]);
}

/// An operand of which only the shape is known.
Operand shape_only(const char* name, nb::handle shape, tessera_element_type type)
{
    Operand operand;
    operand.name = name;
    operand.type = type;
    std::int64_t packed = 1;
    const auto extents = nb::cast<nb::sequence>(shape);
    operand.ndim = static_cast<int>(nb::len(extents));
    if (operand.ndim > Operand::max_dimensions) {
        raise("invalid_argument", std::string(name) + " has " + std::to_string(operand.ndim) + " dimensions",
              "at most 8");
    }
    for (int i = operand.ndim; i-- > 0;) {
        const auto at = static_cast<std::size_t>(i);
        operand.shape[at] = nb::cast<std::int64_t>(extents[i]);
        operand.strides[at] = packed;
        packed *= std::max<std::int64_t>(operand.shape[at], 1);
    }
    return operand;
}

bool is_shape(nb::handle object) { return nb::isinstance<nb::tuple>(object) || nb::isinstance<nb::list>(object); }

}  // namespace

Arguments::Arguments()
{
    for (nb::handle* const handle : {&a,
                                     &b,
                                     &out,
                                     &out_dtype,
                                     &alpha,
                                     &beta,
                                     &c,
                                     &bias,
                                     &activation,
                                     &scale_a,
                                     &scale_b,
                                     &scale_d,
                                     &amax_d,
                                     &gating,
                                     &pre_activation,
                                     &tf32,
                                     &fp8_accumulation,
                                     &f16_accumulation,
                                     &variant,
                                     &workspace_limit,
                                     &stream}) {
        *handle = Py_None;
    }
}

void Arguments::take(nb::handle keywords, const char* function)
{
    const std::array<std::pair<const char*, nb::handle*>, 19> names{{{"out", &out},
                                                                     {"out_dtype", &out_dtype},
                                                                     {"alpha", &alpha},
                                                                     {"beta", &beta},
                                                                     {"c", &c},
                                                                     {"bias", &bias},
                                                                     {"activation", &activation},
                                                                     {"scale_a", &scale_a},
                                                                     {"scale_b", &scale_b},
                                                                     {"scale_d", &scale_d},
                                                                     {"amax_d", &amax_d},
                                                                     {"gating", &gating},
                                                                     {"pre_activation", &pre_activation},
                                                                     {"tf32", &tf32},
                                                                     {"fp8_accumulation", &fp8_accumulation},
                                                                     {"f16_accumulation", &f16_accumulation},
                                                                     {"variant", &variant},
                                                                     {"workspace_limit", &workspace_limit},
                                                                     {"stream", &stream}}};
    for (const auto& [key, value] : nb::cast<nb::dict>(keywords)) {
        const std::string_view name = text_of(key, "a keyword");
        const auto* const found =
            std::find_if(names.begin(), names.end(), [&](const auto& entry) { return name == entry.first; });
        if (found == names.end()) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%s'", function,
                         std::string(name).c_str());
            throw nb::python_error();
        }
        *found->second = value;
    }
}

/// Dimensions before the last two, of D and of each other operand: strides of 0 where it is shared.
struct Product::Batch {
    static constexpr int operands = 5;  // a, b, c, x, d
    static constexpr int d = 4;

    struct Dimension {
        std::int64_t extent;
        std::array<std::int64_t, operands> strides;
    };
    std::array<Dimension, Operand::max_dimensions> dimensions{};
    int count = 0;

    /// Makes one dimension of two that lie behind each other in every operand.
    void merge()
    {
        for (int i = count - 1; i > 0; --i) {
            Dimension& outer = dimensions[static_cast<std::size_t>(i - 1)];
            const Dimension& inner = dimensions[static_cast<std::size_t>(i)];
            bool fits = true;
            for (int k = 0; k < operands; ++k) {
                const auto at = static_cast<std::size_t>(k);
                fits = fits && outer.strides[at] == inner.strides[at] * inner.extent;
            }
            if (fits) {
                outer = {outer.extent * inner.extent, inner.strides};
                std::copy(dimensions.begin() + i + 1, dimensions.begin() + count, dimensions.begin() + i);
                --count;
            }
        }
    }
};

Product::Product(const Arguments& arguments, Use use)
    : reader_(arguments.stream, is_shape(arguments.a) ? nb::handle(Py_None) : arguments.a), arguments_(arguments)
{
    read_modes(arguments);
    if (use == Use::description && is_shape(arguments.a) && is_shape(arguments.b)) {
        const tessera_element_type type =
            arguments.out_dtype.is_none() ? TESSERA_F32 : element_type_of(arguments.out_dtype);
        operand_a_ = shape_only("A", arguments.a, type);
        operand_b_ = shape_only("B", arguments.b, type);
    } else {
        operand_a_ = reader_.read("A", arguments.a);
        operand_b_ = reader_.read("B", arguments.b);
    }
    require_matrix(operand_a_);
    require_matrix(operand_b_);
    if (arguments.transpose_a) {
        transpose(operand_a_);
    }
    if (arguments.transpose_b) {
        transpose(operand_b_);
    }
    derive_shape();
    read_vectors(arguments, reader_);
    const bool has_out = !arguments.out.is_none();
    if (has_out) {
        operand_d_ = reader_.read("D", arguments.out);
        if (!operand_d_.writable) {
            raise("invalid_argument", "D is read-only", "an array that may be written");
        }
        if (!std::equal(shape_.begin(), shape_.end(), operand_d_.shape.begin(),
                        operand_d_.shape.begin() + operand_d_.ndim)) {
            raise("shape_mismatch",
                  "A is " + text_of(operand_a_) + " and B is " + text_of(operand_b_) + ", so D is " +
                      shape_text(static_cast<int>(shape_.size()), shape_.data()) + ", but out is " +
                      text_of(operand_d_),
                  "an out of that shape, or none");
        }
    } else {
        operand_d_.name = "D";
        operand_d_.ndim = static_cast<int>(shape_.size());
        operand_d_.type = out_type_;
        operand_d_.device = operand_a_.device;
        std::int64_t packed = 1;
        for (std::size_t i = shape_.size(); i-- > 0;) {
            operand_d_.shape[i] = shape_[i];
            operand_d_.strides[i] = packed;
            packed *= std::max<std::int64_t>(shape_[i], 1);
        }
    }
    fit_batches();
}

void Product::read_modes(const Arguments& arguments)
{
    epilogue_.size = sizeof(epilogue_);
    options_.size = sizeof(options_);
    if (!arguments.alpha.is_none()) {
        alpha_ = number_of(arguments.alpha, "alpha");
        epilogue_.alpha = &alpha_;
    }
    if (!arguments.beta.is_none()) {
        beta_ = number_of(arguments.beta, "beta");
        epilogue_.beta = &beta_;
    }
    epilogue_.activation = number_of(arguments.activation, "activation", activations);
    epilogue_.gating = number_of(arguments.gating, "gating", gatings);
    gated_ = epilogue_.gating != TESSERA_NO_GATING;
    epilogue_.fp8_accumulation = number_of(arguments.fp8_accumulation, "fp8_accumulation", fp8_sums);
    epilogue_.f16_accumulation = number_of(arguments.f16_accumulation, "f16_accumulation", f16_sums);
    if (!arguments.variant.is_none()) {
        const auto name = std::string(text_of(arguments.variant, "variant"));
        check(tessera_variant_from_name(name.c_str(), &options_.variant), "tessera");
    }
    if (!arguments.workspace_limit.is_none()) {
        options_.workspace_owner = TESSERA_WORKSPACE_LIMITED;
        options_.workspace_bytes = nb::cast<std::size_t>(arguments.workspace_limit);
    }
}

/// D's shape by numpy's rules of broadcasting, and its type.
void Product::derive_shape()
{
    const int batches = std::max(operand_a_.ndim, operand_b_.ndim) - 2;
    shape_.resize(static_cast<std::size_t>(batches) + 2);
    for (int i = 0; i < batches; ++i) {
        const auto extent_of = [&](const Operand& operand) {
            const int at = i - batches + operand.ndim - 2;
            return at < 0 ? std::int64_t{1} : operand.shape[static_cast<std::size_t>(at)];
        };
        const std::int64_t of_a = extent_of(operand_a_);
        const std::int64_t of_b = extent_of(operand_b_);
        if (of_a != of_b && of_a != 1 && of_b != 1) {
            raise("shape_mismatch",
                  "A is " + text_of(operand_a_) + " and B is " + text_of(operand_b_) + ": their batches of " +
                      std::to_string(of_a) + " and " + std::to_string(of_b) + " differ",
                  "equal batches, or a batch of 1, which is used for all");
        }
        shape_[static_cast<std::size_t>(i)] = of_a == 1 ? of_b : of_a;
    }
    const std::int64_t columns = columns_of(operand_b_);
    shape_[static_cast<std::size_t>(batches)] = rows_of(operand_a_);
    shape_[static_cast<std::size_t>(batches) + 1] = gated_ ? columns / 2 : columns;
    const bool has_8_bits = operand_a_.type == TESSERA_F8E4M3 || operand_a_.type == TESSERA_F8E5M2;
    out_type_ = !arguments_.out_dtype.is_none() ? element_type_of(arguments_.out_dtype)
                : has_8_bits                    ? TESSERA_BF16
                                                : operand_a_.type;
    if (!arguments_.tf32.is_none() && nb::cast<bool>(arguments_.tf32)) {
        if (operand_a_.type != TESSERA_F32 || operand_b_.type != TESSERA_F32) {
            raise("invalid_argument",
                  std::string("tf32 is for inputs of f32, and A has elements of ") + name_of(operand_a_.type),
                  "leave tf32 out");
        }
        operand_a_.type = operand_b_.type = TESSERA_TF32;
    }
}

tessera_vector Product::vector_of(const char* name, nb::handle object, Reader& reader, bool* is_per_row)
{
    Operand operand = reader.read(name, object);
    owners_.push_back(operand.owner);
    std::int64_t count = 1;
    std::int64_t stride = 1;
    int used = 0;
    for (int i = 0; i < operand.ndim; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (operand.shape[at] != 1) {
            ++used;
            count = operand.shape[at];
            stride = operand.strides[at];
        }
    }
    if (used > 1) {
        raise("shape_mismatch", std::string(name) + " is " + text_of(operand) + ": it is a vector",
              "one dimension, or others of extent 1; all matrices of a batch share it");
    }
    if (stride != 1 && count > 1) {
        raise("invalid_argument", std::string(name) + " has a stride of " + std::to_string(stride),
              "a vector without gaps");
    }
    if (is_per_row != nullptr && operand.ndim >= 2) {  // (m, 1) runs along rows
        const std::int64_t rows = rows_of(operand);
        *is_per_row = columns_of(operand) == 1 && (rows != 1 || rows_of(operand_a_) == 1);
    }
    return {operand.data, operand.type, operand.device, count};
}

void Product::read_vectors(const Arguments& arguments, Reader& reader)
{
    if (!arguments.bias.is_none()) {
        bool is_per_row = false;
        epilogue_.bias = vector_of("the bias", arguments.bias, reader, &is_per_row);
        epilogue_.bias_axis = is_per_row ? TESSERA_BIAS_PER_ROW : TESSERA_BIAS_PER_COLUMN;
    }
    if (!arguments.scale_a.is_none()) {
        epilogue_.scale_a = vector_of("scale_a", arguments.scale_a, reader);
    }
    if (!arguments.scale_b.is_none()) {
        epilogue_.scale_b = vector_of("scale_b", arguments.scale_b, reader);
    }
    if (!arguments.scale_d.is_none()) {
        epilogue_.scale_d = vector_of("scale_d", arguments.scale_d, reader);
    }
    if (!arguments.amax_d.is_none()) {
        epilogue_.amax_d = vector_of("amax_d", arguments.amax_d, reader);
    }
    if (!arguments.c.is_none()) {
        operand_c_ = reader.read("C", arguments.c);
        require_matrix(operand_c_);
        epilogue_.c = &c_;
    }
    if (!arguments.pre_activation.is_none()) {
        operand_x_ = reader.read("the pre-activation", arguments.pre_activation);
        require_matrix(operand_x_);
        epilogue_.pre_activation = &x_;
    }
}

void Product::fit_batches()
{
    const std::array<const Operand*, Batch::operands> all{
        &operand_a_, &operand_b_, epilogue_.c != nullptr ? &operand_c_ : nullptr,
        epilogue_.pre_activation != nullptr ? &operand_x_ : nullptr, &operand_d_};
    const int dimensions = operand_d_.ndim - 2;
    Batch batch;
    bool is_empty = false;
    for (int i = 0; i < dimensions; ++i) {
        const std::int64_t extent = operand_d_.shape[static_cast<std::size_t>(i)];
        is_empty = is_empty || extent == 0;
        Batch::Dimension dimension{extent, {}};
        for (std::size_t k = 0; k < all.size(); ++k) {
            if (all[k] == nullptr) {
                continue;
            }
            const int at = i - dimensions + all[k]->ndim - 2;
            const std::int64_t own = at < 0 ? 1 : all[k]->shape[static_cast<std::size_t>(at)];
            if (own != extent && own != 1) {
                raise("shape_mismatch",
                      std::string(all[k]->name) + " is " + text_of(*all[k]) + " and D is " + text_of(operand_d_) +
                          ": their batches differ",
                      "equal batches, or a batch of 1, which is used for all");
            }
            dimension.strides[k] = own == 1 ? 0 : all[k]->strides[static_cast<std::size_t>(at)];
        }
        if (extent != 1) {
            batch.dimensions[static_cast<std::size_t>(batch.count++)] = dimension;
        }
    }
    batch.merge();

    const auto fill = [](tessera_matrix& matrix, const Operand& operand) {
        matrix.data = operand.data;
        matrix.type = operand.type;
        matrix.device = operand.device;
        matrix.rows = rows_of(operand);
        matrix.columns = columns_of(operand);
        matrix.row_stride = row_stride_of(operand);
        matrix.column_stride = column_stride_of(operand);
        matrix.batches = 1;
        matrix.outer_batches = 1;
    };
    const std::array<tessera_matrix*, Batch::operands> matrices{&a_, &b_, &c_, &x_, &d_};
    for (std::size_t k = 0; k < all.size(); ++k) {
        if (all[k] != nullptr) {
            fill(*matrices[k], *all[k]);
        }
    }
    if (is_empty) {
        for (tessera_matrix* const matrix : matrices) {
            matrix->batches = 0;
        }
        return;
    }
    // A layer: samples of all batches are rows of one product, if they follow each other and share B.
    if (batch.count > 0) {
        const Batch::Dimension& last = batch.dimensions[static_cast<std::size_t>(batch.count - 1)];
        bool folds =
            last.strides[1] == 0 && epilogue_.scale_a.count <= 1 && epilogue_.bias_axis == TESSERA_BIAS_PER_COLUMN;
        for (const std::size_t k : {0, 2, 3, 4}) {
            const tessera_matrix& matrix = *matrices[k];
            folds =
                folds && (all[k] == nullptr || (matrix.rows == 1 ? matrix.column_stride == 1 && last.strides[k] > 0
                                                                 : last.strides[k] == matrix.rows * matrix.row_stride));
        }
        if (folds) {
            for (const std::size_t k : {0, 2, 3, 4}) {
                tessera_matrix& matrix = *matrices[k];
                matrix.row_stride = matrix.rows == 1 ? last.strides[k] : matrix.row_stride;
                matrix.rows *= last.extent;
            }
            --batch.count;
        }
    }
    if (batch.count > 2) {
        raise("invalid_argument",
              "the batches of D, " + text_of(operand_d_) + ", lie in " + std::to_string(batch.count) +
                  " levels of memory",
              "at most two: make the operands contiguous");
    }
    for (int level = 0; level < batch.count; ++level) {
        const Batch::Dimension& dimension = batch.dimensions[static_cast<std::size_t>(batch.count - 1 - level)];
        for (std::size_t k = 0; k < all.size(); ++k) {
            if (all[k] == nullptr) {
                continue;
            }
            (level == 0 ? matrices[k]->batches : matrices[k]->outer_batches) = dimension.extent;
            (level == 0 ? matrices[k]->batch_stride : matrices[k]->outer_stride) = dimension.strides[k];
        }
    }
}

void Product::make_output(void** data)
{
    const Source& source = reader_.source();
    if (source.api != nullptr) {
        managed_ = allocate_by(*source.api, out_type_, operand_a_.device, shape_.size(), shape_.data());
        *data = static_cast<char*>(managed_->tensor.data) + managed_->tensor.byte_offset;
    } else {
        array_ = make_array(shape_, out_type_, operand_a_.device, reader_.stream());
        *data = array_.data();
        d_.device = array_.memory->device();
    }
}

nb::object Product::launch(const tessera_plan* plan, const char* function)
{
    const Source& source = reader_.source();
    if (source.is_torch && !arguments_.allow_gradients) {
        require_no_gradient({arguments_.a, arguments_.b, arguments_.c, arguments_.bias});
    }
    const bool has_out = !arguments_.out.is_none();
    if (!has_out) {
        make_output(&d_.data);
    }
    Workspace workspace(source.api, reader_.stream(), operand_a_.device);
    tessera_status status = TESSERA_SUCCESS;
    try {
        const tessera_options* const options = workspace.options(plan, a_, b_, d_, epilogue_, options_);
        status = plan == nullptr ? tessera_gemm(reader_.stream(), &a_, &b_, &d_, &epilogue_, options)
                                 : tessera_plan_launch(plan, reader_.stream(), &a_, &b_, &d_, &epilogue_, options);
        check(status, function);
        reader_.finish();
    } catch (...) {
        if (managed_ != nullptr) {
            managed_->deleter(managed_);
        }
        throw;
    }
    if (has_out) {
        return nb::borrow(arguments_.out);
    }
    if (managed_ != nullptr) {
        void* object = nullptr;
        if (source.api->to_object(managed_, &object) != 0) {
            throw nb::python_error();
        }
        return nb::steal(static_cast<PyObject*>(object));
    }
    return finished(arguments_.a);
}

/// The array as the caller's kind, if that says how to make it.
nb::object Product::finished(nb::handle first)
{
    nb::object array = nb::cast(std::move(array_));
    if (reader_.source().is_array) {
        return array;
    }
    if (nb::hasattr(first, "__array_namespace__")) {  // CuPy, JAX
        return first.attr("__array_namespace__")().attr("from_dlpack")(array);
    }
    const nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(first.ptr())));
    const auto module = nb::cast<std::string>(nb::str(nb::getattr(type, "__module__", nb::str(""))));
    const nb::object root = nb::module_::import_("sys").attr("modules").attr("get")(module.substr(0, module.find('.')));
    if (!root.is_none() && nb::hasattr(root, "from_dlpack")) {  // torch before 2.10
        return root.attr("from_dlpack")(array);
    }
    return array;
}

}  // namespace tessera::python
