/// The C ABI's products: its structures become operands and epilogues, and everything else is `Gemm` and `GemmPlan`.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>

#include "c/guard.hpp"
#include "c/structures.hpp"
#include "gemm/gemm_operands.hpp"
#include "tessera/gemm.hpp"
#include "tessera/gemm_tuner.hpp"

struct tessera_plan {
    tessera::GemmPlan plan;
};

namespace {

using namespace tessera;
using c::copy_text;
using c::guarded;
using c::nowhere;
using c::refuse;
using c::require_pointer;

/// Copies what this release knows of a structure that begins with its size. A program of an earlier release has fewer
/// members, and one of a later release may not use those that are not known here.
void copy_known(void* known, std::size_t known_size, const void* given, const char* name)
{
    std::size_t size = 0;
    std::memcpy(&size, given, sizeof(size));
    const auto* const bytes = static_cast<const char*>(given);
    if (size < sizeof(size)) {
        refuse("set .size to sizeof the structure", "the size of the {} is {}", name, size);
    }
    if (size > known_size && std::any_of(bytes + known_size, bytes + size, [](char byte) { return byte != 0; })) {
        refuse("load a newer library", "the {} has members that release {} does not know", name,
               tessera_version_text());
    }
    std::memcpy(known, given, std::min(size, known_size));
}

template <class Structure>
Structure known_part(const Structure* given, const char* name)
{
    Structure known{};
    if (given != nullptr) {
        copy_known(&known, sizeof(known), given, name);
    }
    return known;
}

void require_number(std::int32_t number, int last, const char* what)
{
    if (number < 0 || number > last) {
        refuse("one of the numbers of tessera.h", "{} is no {}", number, what);
    }
}

/// Returns the enumerator with a number of the C ABI, which has the same numbers.
template <class Enumeration>
Enumeration checked(std::int32_t number, Enumeration last, const char* what)
{
    require_number(number, static_cast<int>(last), what);
    return static_cast<Enumeration>(number);
}

ElementType type_of(tessera_element_type type) { return checked(type, ElementType::f8e5m2, "element type"); }

bool is_variant(tessera_variant number)
{
    switch (number) {
        case TESSERA_AUTOMATIC:
        case TESSERA_SIMT_NAIVE:
        case TESSERA_SIMT_TILED:
        case TESSERA_SIMT_VECTORIZED:
        case TESSERA_SIMT_COARSENED:
        case TESSERA_SIMT_REGISTER_BLOCKED:
        case TESSERA_MMA_SYNC:
        case TESSERA_HOPPER:
        case TESSERA_BLACKWELL: return true;
        default: return false;
    }
}

Variant variant_of(tessera_variant number)
{
    if (!is_variant(number)) {
        refuse("one of the numbers of tessera.h", "{} is no variant", number);
    }
    return static_cast<Variant>(number);
}

struct Order {
    bool row_major;
    std::int64_t leading_dimension;
};

/// Reads the storage order from the strides. Those of dimensions with at most one element mean nothing.
Order order_of(const char* name, const tessera_matrix& matrix)
{
    const bool has_rows = matrix.rows > 1;
    const bool has_columns = matrix.columns > 1;
    const std::int64_t packed_row = std::max<std::int64_t>(matrix.columns, 1);
    if (matrix.rows <= 0 || matrix.columns <= 0) {
        return {true, packed_row};
    }
    if (has_columns && matrix.column_stride == 1) {
        return {true, has_rows ? matrix.row_stride : packed_row};
    }
    if (has_rows && matrix.row_stride == 1) {
        return {false, has_columns ? matrix.column_stride : matrix.rows};
    }
    if (!has_columns) {
        return {true, has_rows ? matrix.row_stride : 1};
    }
    if (!has_rows) {
        return {false, matrix.column_stride};
    }
    refuse("a copy of it whose rows or columns have a stride of 1",
           "{} is {}x{} and has strides of {} and {}: rows or columns must be contiguous", name, matrix.rows,
           matrix.columns, matrix.row_stride, matrix.column_stride);
}

/// Returns the device of memory that is not empty. An ordinal is trusted: CUDA would be asked at every launch.
int device_of(const void* data, std::size_t alignment, std::int32_t device)
{
    const bool is_sound = data != nullptr && std::bit_cast<std::uintptr_t>(data) % alignment == 0;
    return device >= 0 && is_sound ? device : detail::device_of_elements(data, alignment, "", nowhere);
}

enum class Memory { is_used, is_ignored };

MatrixOperand operand_of(const char* name, const tessera_matrix* matrix, Memory memory, bool writable = false)
{
    require_pointer(matrix, name);
    const Order order = order_of(name, *matrix);
    MatrixOperand operand;
    operand.data = matrix->data;
    operand.type = type_of(matrix->type);
    operand.rows = matrix->rows;
    operand.columns = matrix->columns;
    operand.leading_dimension = order.leading_dimension;
    operand.row_major = order.row_major;
    operand.batches = matrix->batches;
    operand.batch_stride = matrix->batch_stride;
    operand.outer_batches = matrix->outer_batches;
    operand.outer_stride = matrix->outer_stride;
    operand.present = true;
    operand.writable = writable;
    detail::require_batch_extents("",
                                  {operand.rows, operand.columns, operand.leading_dimension, operand.batches,
                                   operand.batch_stride, operand.outer_batches, operand.outer_stride},
                                  operand.row_major, size_of(operand.type), nowhere);
    const bool is_empty =
        operand.rows == 0 || operand.columns == 0 || operand.batches == 0 || operand.outer_batches == 0;
    if (memory == Memory::is_used && !is_empty) {
        operand.device = device_of(operand.data, size_of(operand.type), matrix->device);
    }
    return operand;
}

/// The number of elements and the device of a vector that is there.
struct Line {
    std::size_t count;
    int device;
};

Line line_of(const char* name, const tessera_vector& vector, Memory memory)
{
    if (vector.count < 0) {
        refuse("a count of 0 or more", "{} has {} elements", name, vector.count);
    }
    const bool is_used = memory == Memory::is_used && vector.count > 0;
    return {static_cast<std::size_t>(vector.count),
            is_used ? device_of(vector.data, size_of(type_of(vector.type)), vector.device) : -1};
}

DeviceSpan<float> floats_of(const char* name, const tessera_vector& vector, Memory memory)
{
    if (vector.data == nullptr) {
        return {};
    }
    if (vector.type != TESSERA_F32) {
        refuse("elements of f32", "{} has elements of {}", name, to_string(type_of(vector.type)));
    }
    const Line line = line_of(name, vector, memory);
    return {static_cast<float*>(vector.data), line.count, line.device};
}

Bias bias_of(const tessera_epilogue& given, Memory memory)
{
    Bias bias;
    if (given.bias.data == nullptr) {
        return bias;
    }
    bias.type = type_of(given.bias.type);
    if (bias.type != ElementType::f32 && bias.type != ElementType::f16 && bias.type != ElementType::bf16) {
        refuse("elements of f32, f16 or bf16", "the bias has elements of {}", to_string(bias.type));
    }
    require_number(given.bias_axis, TESSERA_BIAS_PER_ROW, "axis of a bias");
    const Line line = line_of("the bias", given.bias, memory);
    bias.data = given.bias.data;
    bias.size = line.count;
    bias.axis = given.bias_axis == TESSERA_BIAS_PER_ROW ? BiasAxis::per_row : BiasAxis::per_column;
    bias.device = line.device;
    return bias;
}

Epilogue epilogue_of(const tessera_epilogue* pointer, Memory memory)
{
    Epilogue epilogue;
    if (pointer == nullptr) {
        return epilogue;
    }
    const tessera_epilogue given = known_part(pointer, "epilogue");
    epilogue.alpha = given.alpha == nullptr ? 1.0F : *given.alpha;
    if (given.beta != nullptr) {
        epilogue.beta = *given.beta;
    }
    if (given.c != nullptr) {
        epilogue.c = operand_of("C", given.c, memory);
    }
    if (given.pre_activation != nullptr) {
        epilogue.pre_activation = operand_of("the pre-activation", given.pre_activation, memory, true);
    }
    epilogue.bias = bias_of(given, memory);
    epilogue.scale_a = floats_of("scale_a", given.scale_a, memory);
    epilogue.scale_b = floats_of("scale_b", given.scale_b, memory);
    epilogue.scale_d = floats_of("scale_d", given.scale_d, memory);
    epilogue.amax_d = floats_of("amax_d", given.amax_d, memory);
    epilogue.activation = checked(given.activation, Activation::tanh, "activation");
    epilogue.gating = checked(given.gating, Gating::side_by_side, "gating");
    epilogue.fp8_accumulation = checked(given.fp8_accumulation, Fp8Accumulation::fast, "way to add 8-bit products");
    epilogue.f16_accumulation = checked(given.f16_accumulation, F16Accumulation::in_f16, "way to add f16 products");
    return epilogue;
}

detail::GemmOperands operands_of(const tessera_matrix* a, const tessera_matrix* b, const tessera_matrix* d,
                                 Memory memory)
{
    return {operand_of("A", a, memory), operand_of("B", b, memory), operand_of("D", d, memory, true)};
}

/// A default stream belongs to the device that is current, or to D's if the caller says which that is.
StreamRef stream_of(tessera_stream stream, const tessera_matrix* d)
{
    return d != nullptr && d->device >= 0 ? StreamRef(detail::known_device, stream, d->device, nullptr)
                                          : StreamRef(stream);
}

Workspace workspace_of(const tessera_options& options, int device)
{
    require_number(options.workspace_owner, TESSERA_WORKSPACE_LIMITED, "owner of a workspace");
    switch (options.workspace_owner) {
        case TESSERA_WORKSPACE_OF_CALLER:
            return DeviceSpan<std::byte>(static_cast<std::byte*>(options.workspace), options.workspace_bytes, device);
        case TESSERA_WORKSPACE_LIMITED: return Workspace::at_most(options.workspace_bytes);
        default: return {};
    }
}

/// The facts of a product, of which no memory is read.
GemmProblem problem_of(const tessera_matrix* a, const tessera_matrix* b, const tessera_matrix* d,
                       const tessera_epilogue* given)
{
    detail::GemmOperands operands = operands_of(a, b, d, Memory::is_ignored);
    Epilogue epilogue = epilogue_of(given, Memory::is_ignored);
    detail::require_product(operands, epilogue, "", nowhere);
    detail::share_single_matrices(operands, epilogue);
    return detail::problem_of(operands, epilogue);
}

Device device_of(int ordinal) { return ordinal < 0 ? Device::current() : Device(ordinal); }

}  // namespace

namespace tessera::c {

void copy_text(std::string_view text, char* room, std::size_t capacity, std::size_t* length)
{
    if (capacity > 0) {
        require_pointer(room, "text");
        const std::size_t copied = std::min(text.size(), capacity - 1);
        std::memcpy(room, text.data(), copied);
        room[copied] = '\0';
    }
    if (length != nullptr) {
        *length = text.size();
    }
}

MatrixOperand used_operand(const char* name, const tessera_matrix* matrix, bool writable)
{
    return operand_of(name, matrix, Memory::is_used, writable);
}

Epilogue used_epilogue(const tessera_epilogue* epilogue) { return epilogue_of(epilogue, Memory::is_used); }

}  // namespace tessera::c

tessera_matrix tessera_row_major(void* data, tessera_element_type type, int64_t rows, int64_t columns,
                                 int64_t leading_dimension)
{
    return {data, type, -1, rows, columns, leading_dimension, 1, 1, 0, 1, 0};
}

tessera_matrix tessera_column_major(void* data, tessera_element_type type, int64_t rows, int64_t columns,
                                    int64_t leading_dimension)
{
    return {data, type, -1, rows, columns, 1, leading_dimension, 1, 0, 1, 0};
}

tessera_matrix tessera_transposed(tessera_matrix matrix)
{
    std::swap(matrix.rows, matrix.columns);
    std::swap(matrix.row_stride, matrix.column_stride);
    return matrix;
}

// A name is a literal, which ends with 0.
const char* tessera_variant_name(tessera_variant variant)
{
    return is_variant(variant) ? to_string(static_cast<Variant>(variant)).data() : "unknown";
}

tessera_status tessera_variant_from_name(const char* name, tessera_variant* variant)
{
    return guarded("tessera_variant_from_name", [&] {
        require_pointer(name, "name");
        require_pointer(variant, "variant");
        *variant = static_cast<tessera_variant>(variant_from_string(name));
    });
}

tessera_status tessera_gemm(tessera_stream stream, const tessera_matrix* a, const tessera_matrix* b,
                            const tessera_matrix* d, const tessera_epilogue* epilogue, const tessera_options* options)
{
    return guarded("tessera_gemm", [&] {
        const tessera_options known = known_part(options, "options");
        const StreamRef on = stream_of(stream, d);
        detail::launch_gemm(on, operands_of(a, b, d, Memory::is_used), epilogue_of(epilogue, Memory::is_used),
                            variant_of(known.variant), workspace_of(known, on.device()), nowhere);
    });
}

tessera_status tessera_plan_create(int device, const tessera_matrix* a, const tessera_matrix* b,
                                   const tessera_matrix* d, const tessera_epilogue* epilogue,
                                   const tessera_options* options, tessera_plan** plan)
{
    return guarded("tessera_plan_create", [&] {
        require_pointer(plan, "plan");
        const tessera_options known = known_part(options, "options");
        const Device on = device_of(device);
        *plan = new tessera_plan{GemmPlan::prepare(on, problem_of(a, b, d, epilogue), variant_of(known.variant),
                                                   workspace_of(known, on.ordinal()).limit(), nowhere)};
    });
}

void tessera_plan_destroy(tessera_plan* plan) { delete plan; }

size_t tessera_plan_workspace_bytes(const tessera_plan* plan)
{
    return plan == nullptr ? 0 : plan->plan.workspace_bytes();
}

tessera_variant tessera_plan_variant(const tessera_plan* plan)
{
    return plan == nullptr ? TESSERA_AUTOMATIC : static_cast<tessera_variant>(plan->plan.variant());
}

tessera_status tessera_plan_launch(const tessera_plan* plan, tessera_stream stream, const tessera_matrix* a,
                                   const tessera_matrix* b, const tessera_matrix* d, const tessera_epilogue* epilogue,
                                   const tessera_options* options)
{
    return guarded("tessera_plan_launch", [&] {
        require_pointer(plan, "plan");
        const tessera_options known = known_part(options, "options");
        if (known.workspace_owner == TESSERA_WORKSPACE_LIMITED) {
            refuse("limit it in tessera_plan_create",
                   "a launch of a plan cannot limit the workspace: the kernel was chosen");
        }
        const StreamRef on = stream_of(stream, d);
        const auto [operand_a, operand_b, operand_d] = operands_of(a, b, d, Memory::is_used);
        plan->plan.launch(on, operand_a, operand_b, operand_d, epilogue_of(epilogue, Memory::is_used),
                          workspace_of(known, on.device()), nowhere);
    });
}

tessera_status tessera_plan_explain(const tessera_plan* plan, char* text, size_t capacity, size_t* length)
{
    return guarded("tessera_plan_explain", [&] {
        require_pointer(plan, "plan");
        copy_text(plan->plan.explain(), text, capacity, length);
    });
}

tessera_status tessera_explain(int capability, const tessera_matrix* a, const tessera_matrix* b,
                               const tessera_matrix* d, const tessera_epilogue* epilogue, tessera_variant variant,
                               char* text, size_t capacity, size_t* length)
{
    return guarded("tessera_explain", [&] {
        const DeviceProperties device = capability == 0
                                            ? Device::current().properties()
                                            : DeviceProperties::of_compute_capability(capability / 10, capability % 10);
        copy_text(GemmPlan::explain(problem_of(a, b, d, epilogue), device, variant_of(variant)), text, capacity,
                  length);
    });
}

tessera_status tessera_tune(int device, const tessera_matrix* a, const tessera_matrix* b, const tessera_matrix* d,
                            const tessera_epilogue* epilogue, const tessera_tuning_options* options,
                            tessera_tuning_result* result)
{
    return guarded("tessera_tune", [&] {
        const tessera_tuning_options given = known_part(options, "tuning_options");
        if (result != nullptr && result->size != sizeof(*result)) {
            refuse("set .size to sizeof(tessera_tuning_result)", "the size of the tuning_result is {}", result->size);
        }
        TuningOptions chosen;
        const auto take = [](auto& member, auto value) {
            if (value != 0) {
                member = value;
            }
        };
        take(chosen.rounds, given.rounds);
        take(chosen.sample_seconds, given.sample_seconds);
        take(chosen.prune_ratio, given.prune_ratio);
        take(chosen.time_limit_seconds, given.time_limit_seconds);
        take(chosen.seed, given.seed);
        const TuningResult found = Gemm::tune(device_of(device), problem_of(a, b, d, epilogue), chosen, nowhere);
        if (result != nullptr) {
            result->variant = static_cast<tessera_variant>(found.best.variant);
            result->seconds = found.best.seconds;
            result->untuned_seconds = found.untuned.seconds;
            result->candidates = found.trials.size();
            copy_text(found.best.configuration, result->configuration, sizeof(result->configuration), nullptr);
        }
    });
}

tessera_status tessera_tuning_save(const char* path)
{
    return guarded("tessera_tuning_save", [&] {
        require_pointer(path, "path");
        GemmTuningCache::save(path);
    });
}

tessera_status tessera_tuning_load(const char* path, size_t* used)
{
    return guarded("tessera_tuning_load", [&] {
        require_pointer(path, "path");
        const GemmTuningCache::Loaded loaded = GemmTuningCache::load(path);
        if (used != nullptr) {
            *used = loaded.used;
        }
    });
}

tessera_status tessera_set_workspace_allocator(int device, void* context, tessera_allocate allocate,
                                               tessera_deallocate deallocate)
{
    return guarded("tessera_set_workspace_allocator", [&] {
        if ((allocate == nullptr) != (deallocate == nullptr)) {
            refuse("both functions, or NULL for both", "one of the two functions is NULL");
        }
        const MemoryResourceRef resource =
            allocate == nullptr ? MemoryResourceRef() : MemoryResourceRef(context, allocate, deallocate);
        GemmPlan::set_workspace_resource(Device(device), resource);
    });
}

void tessera_release_workspaces() { GemmPlan::release_workspaces(); }
