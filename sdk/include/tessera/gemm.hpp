#pragma once

/// @file
/// @ingroup host_gemm
/// @brief Matrix multiplication: `Gemm::launch`, and `GemmPlan`, the same product prepared once.
///
/// The contract of every launch is on the page of `Gemm`.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>

#include "tessera/detail/kernel_choice.hpp"
#include "tessera/detail/operand_kind.hpp"
#include "tessera/device_span.hpp"
#include "tessera/gemm_problem.hpp"
#include "tessera/matrix_operand.hpp"
#include "tessera/matrix_view.hpp"
#include "tessera/memory_resource.hpp"
#include "tessera/stream.hpp"
#include "tessera/workspace.hpp"

namespace tessera {

struct TuningOptions;  // gemm_tuner.hpp; forward declarations keep <vector> out of this header
struct TuningResult;

/// A vector that is added to every column or to every row of the product. Does not own its memory. All matrices of a
/// batch share it.
///
/// @code{.cpp}
/// Gemm::launch(stream, x, w, y, {.bias = Bias::per_column(bias.span())});
/// @endcode
///
/// @par Thread safety
/// A value: threads may use copies of it, or read the same object.
struct Bias {
    const void* data = nullptr;           ///< device address of the first element
    ElementType type = ElementType::f32;  ///< type of each element: f32, f16 or bf16, whatever D's type is
    std::size_t size = 0;                 ///< number of elements: m for `per_row`, B's n for `per_column`
    BiasAxis axis = BiasAxis::none;       ///< what the vector runs along; `none` if there is no bias
    int device = -1;                      ///< ordinal of the memory's device, -1 if there is no bias

    /// No bias.
    Bias() = default;

    /// Refuses to compile for any other type, with a message that says what to pass.
    template <class Other>
        requires(!std::same_as<Other, Bias>)
    Bias(const Other& /*other*/) noexcept
    {
        detail::refuse_as_bias<Other>();
    }

    /// A bias with one element for each row of D: element i is added to all of row i.
    /// @tparam T  f32, f16 or bf16, or CUDA's own type of the same bits; may be const
    /// @param vector  m elements in memory of the stream's device
    template <class T>
    static Bias per_row(DeviceSpan<T> vector) noexcept
    {
        return make(vector, BiasAxis::per_row);
    }
    /// A bias with one element for each column of D: element j is added to all of column j. This is the bias of a
    /// neural network's layer when the rows of D are samples.
    /// @tparam T  f32, f16 or bf16, or CUDA's own type of the same bits; may be const
    /// @param vector  n elements in memory of the stream's device
    template <class T>
    static Bias per_column(DeviceSpan<T> vector) noexcept
    {
        return make(vector, BiasAxis::per_column);
    }

    /// Refuses to compile for any other type, with a message that says what to pass.
    template <class Other>
    static Bias per_row(const Other& /*other*/) noexcept
    {
        detail::refuse_as_bias<Other>();
        return {};
    }
    /// Refuses to compile for any other type, with a message that says what to pass.
    template <class Other>
    static Bias per_column(const Other& /*other*/) noexcept
    {
        detail::refuse_as_bias<Other>();
        return {};
    }

private:
    template <class T>
    static Bias make(DeviceSpan<T> vector, BiasAxis axis) noexcept
    {
        using Element = std::remove_const_t<detail::ElementOf<T>>;  // maps CUDA's own types to the SDK's
        static_assert(AddendElement<Element>, "tessera: a bias has elements of f32, f16 or bf16");
        Bias bias;
        if constexpr (AddendElement<Element>) {
            bias.data = vector.data();
            bias.type = element_traits<Element>::type;
            bias.size = vector.size();
            bias.axis = axis;
            bias.device = vector.device();
        }
        return bias;
    }
};

/// What happens to the product before it is stored: D = act(alpha * A*B + beta * C + bias).
///
/// `scale_a` and `scale_b` undo the scaling of quantized inputs, of any type. Each has one float for the whole matrix, or
/// one for each row of A (per token) and for each column of B (per channel). All matrices of a batch share them. Each of
/// these multiplications is rounded to fp32, in this order: `alpha` times the scale of all of A, times that of all of B;
/// times the sum of products; times the product of the row's and the column's scale, for those that have one.
/// A D of 8 bits is multiplied by `scale_d`, if that is given, before it is rounded:
/// D = scale_d * act(alpha * A*B + beta * C + bias).
///
/// With `gating`, two columns of x = alpha * A*B (scaled) + bias become one of D: act(gate) * up, rounded to fp32 and then to
/// D's type. D is m x n/2; a bias and scales per column have an element for each of the n columns. C and the pre-activation
/// are refused then. Hopper's tensor cores take pairs of a column-major B, or 16-bit ones side by side of a row-major B.
/// `mma_sync` takes all pairs. Other products of pairs run on SIMT kernels; of these, only the naive one takes pairs side by
/// side.
///
/// @code{.cpp}
/// // SwiGLU: w holds the gates' columns, then those of `up`.
/// Gemm::launch(stream, x, w, y, {.activation = Activation::silu, .gating = Gating::side_by_side});
/// @endcode
///
/// Write it with designated initializers. C++ requires them in the order of the members:
///
/// @code{.cpp}
/// Gemm::launch(stream, x, w, y, {.alpha = 0.5F, .c = y, .activation = Activation::gelu});
/// @endcode
struct Epilogue {
    float alpha = 1.0F;              ///< scales the product; if 0, A and B are not read
    std::optional<float> beta = {};  ///< scales C; 1 if not given. If 0, C is not read
    /// Added to the product. Of D's extents, any order, and D's type, or f16 or bf16 if D has 8 bits. One matrix can serve
    /// a batch.
    MatrixOperand c = {};
    Bias bias = {};                            ///< added after scaling; `Bias{}` for none
    Activation activation = Activation::none;  ///< applied last
    /// Receives x = alpha * A*B + beta * C + bias, rounded once, while D = act(x) is computed from the x before rounding.
    /// Training needs it for the gradient of act. Of D's type (f16 or bf16 if D has 8 bits), extents and order; its
    /// leading dimension is its own. Each product of a batch has its own. Empty: x is not stored.
    MatrixOperand pre_activation = {};
    DeviceSpan<const float> scale_a = {};  ///< on the device: 1 float, or m, one for each row of A; or empty
    DeviceSpan<const float> scale_b = {};  ///< on the device: 1 float, or n, one for each column of B; or empty
    DeviceSpan<const float> scale_d = {};  ///< one float on the device that multiplies a D of 8 bits; or empty
    /// One float on the device, or empty; for a D of 8 bits. The launch raises it to the largest magnitude of D before
    /// `scale_d`, over the whole batch, and never lowers it: set it to 0 before, or go on from an earlier maximum. A NaN
    /// in D makes it NaN.
    DeviceSpan<float> amax_d = {};
    Fp8Accumulation fp8_accumulation = Fp8Accumulation::two_level;  ///< how Hopper's tensor cores add 8-bit products
    F16Accumulation f16_accumulation = F16Accumulation::in_f32;     ///< in what `mma_sync` may add f16 products
    Gating gating = Gating::none;                                   ///< pairs of columns become one: act(gate) * up
};

namespace detail {

struct GemmOperands {
    MatrixOperand a;
    MatrixOperand b;
    MatrixOperand d;
};

/// The factor of C: 1 if there is a C and no factor is given.
inline float beta_of(const Epilogue& epilogue) noexcept
{
    return epilogue.beta ? *epilogue.beta : epilogue.c.present ? 1.0F : 0.0F;
}

class SeenLaunches;

/// The latest launches of a plan, shared by its copies and freed with the last of them.
class SeenLaunchesRef {
public:
    SeenLaunchesRef();
    SeenLaunchesRef(const SeenLaunchesRef& other) noexcept;  // no move: a plan that was moved from can be launched
    SeenLaunchesRef& operator=(const SeenLaunchesRef& other) noexcept;
    ~SeenLaunchesRef();

    SeenLaunches* operator->() const noexcept { return seen_; }
    SeenLaunches& operator*() const noexcept { return *seen_; }

private:
    SeenLaunches* seen_;
};

void launch_gemm(StreamRef stream, const GemmOperands& operands, const Epilogue& epilogue, Variant variant,
                 const Workspace& workspace, const std::source_location& caller);

/// A type in the place of the epilogue that is not one. A braced list has no type, so it still becomes an Epilogue.
template <class T>
concept NoEpilogue = !std::convertible_to<const T&, const Epilogue&> && !requires { T::is_user_epilogue; };
/// A function of each value: what tessera/tile/gemm.cuh and tessera/tile/epilogue_program.hpp make.
template <class T>
concept UserEpilogue = requires { T::is_user_epilogue; };

/// Makes the checks of a launch whose kernel is not the library's. @throws Error  as `Gemm::launch`
void require_tensor_core_product(StreamRef stream, const GemmOperands& operands, const std::source_location& caller);

}  // namespace detail

/// Matrix multiplication: D = act(alpha * A*B + beta * C + bias), enqueued on a stream.
///
/// @code{.cpp}
/// Gemm::launch(stream, a.matrix(m, k), b.matrix(k, n), d.matrix(m, n));
/// Gemm::launch(stream, x, w, y,
///              {.bias = Bias::per_column(bias.span()), .activation = Activation::relu});
/// @endcode
///
/// This is the contract of every launch, with or without a plan.
///
/// @par Shapes
/// A is m x k, B is k x n, C and D are m x n (D is m x n/2 with `Epilogue::gating`). Each is row-major or column-major
/// with any leading dimension, independently of the others. Each is a `MatrixView`, a `BatchView` or a
/// `MatrixOperand`, in any mix. D has one matrix for each product of a batch. For A, B and C, a single matrix or a
/// batch stride of 0 serves all products.
/// Extents may be 0: an empty D launches nothing, and k = 0 gives act(beta * C + bias).
///
/// @par Types
/// A and B have the same type: f32, tf32, f16, bf16, f8e4m3 or f8e5m2; or one is f8e4m3 and the other f8e5m2. D is f32,
/// f16, bf16, f8e4m3 or f8e5m2, whatever A and B are. C has D's type; if that has 8 bits, C is f16 or bf16. Wrong types
/// do not compile; those of a `MatrixOperand` are checked by the call.
///
/// @par Arithmetic
/// Products are accumulated in fp32, and the result is rounded once, to D's type. What is too large for an 8-bit D,
/// infinity included, becomes the largest finite value of its sign; NaN stays NaN. SIMT kernels add the products one by
/// one in ascending k, so that all of them give the same bits. Tensor cores add several products at once, as their
/// hardware does; `GemmPlan::explain` names the kernel. For 8-bit inputs, Hopper's tensor cores keep fewer bits than
/// fp32: see `Fp8Accumulation`, and `F16Accumulation` for sums in f16 on request. The same problem on the same device model, with the same build of the library, gives
/// the same bits every time.
///
/// @par What is read
/// C is not read if beta is 0. A beta that is not given is 1 if there is a C. A, B and their scales are not read if
/// alpha is 0; as in BLAS, a NaN in them does not spread then.
///
/// @par Alignment
/// Any address and stride that the element type allows works. Some kernels need more: see
/// `GemmPlan::required_alignment`. Multiples of 16 bytes, which TMA needs, are the fastest.
///
/// @par Aliasing
/// D may be C, as the same view. D must not overlap A, B, a scale or the bias, nor C in any other way. The matrices of
/// D must not overlap each other. The same holds for the pre-activation, which must not overlap D either.
/// `amax_d` must not overlap anything else. Inputs may share memory.
///
/// @par What is enqueued
/// One kernel. The exceptions, which `GemmPlan::explain` names for a problem:
/// - If several clusters add up one tile, a memset of a few hundred bytes precedes the kernel where the workspace is the
///   caller's or was just allocated.
/// - On compute capability 9.0, one more kernel comes first where large operands that TMA cannot load are repacked.
/// - A batch of two levels whose strides do not fold into one level is a kernel for each batch of the level with fewer.
///   Strides fold if, for each of A, B, C, D and the pre-activation, the outer stride is the inner stride times the inner
///   count, or both are 0. If CUDA fails halfway, the kernels that were enqueued before stay enqueued.
///
/// @par Synchronization
/// Asynchronous: the call does not wait, and the work is ordered after all earlier work on the stream. Operands must
/// stay alive and unchanged until the kernel has finished.
///
/// @par Allocation
/// None, except for a workspace (`GemmPlan::workspace_bytes`): the first launch on a stream that needs one allocates
/// it, and so does a launch that needs a larger one. A launch that is given a `Workspace` does not allocate.
///
/// @par Cost
/// The first two launches of a set of operands check them, choose a kernel and encode tensor maps. Any further one with
/// the same epilogue, variant and workspace limit compares and enqueues. The process keeps up to 256 such launches, in
/// host memory that its first launch allocates. A batch that needs several kernels is not kept.
///
/// @par Graphs
/// A launch can be captured into a graph (`Graph::capture`).
///
/// @par Thread safety
/// Every function may be called from several threads at once, also for the same operands and the same stream.
///
/// @par Errors
/// A launch that is refused throws an `Error` with the values that broke the rule. Nothing was enqueued then.
class Gemm {
public:
    /// Enqueues D = act(alpha * A*B + beta * C + bias) on `stream`. The contract above has all rules.
    ///
    /// @tparam A, B, D  a MatrixView, a BatchView or a MatrixOperand each, or a type that converts to MatrixOperand
    /// @param stream    a stream of the operands' device
    /// @param a         m x k, either order, any leading dimension
    /// @param b         k x n, either order, any leading dimension, of A's element type (8-bit types may be mixed)
    /// @param d         m x n, either order, any leading dimension, of any type but tf32
    /// @param epilogue  scales, C, bias and activation
    /// @param variant   the kernel to use, or `automatic`
    /// @throws Error  `shape_mismatch` if extents or batch counts do not fit together; `invalid_argument` if an operand
    ///                is empty, or of a type that cannot be multiplied or stored, or if beta comes without a C;
    ///                `aliasing` if D overlaps an operand or itself; `device_mismatch` if an operand is on another
    ///                device; `variant_refused` if `variant` cannot compute the problem; `unsupported_device` if no
    ///                kernel runs on the device; `out_of_memory` if the workspace cannot be allocated
    template <class A, class B, class D>
    static void launch(StreamRef stream, const A& a, const B& b, const D& d, const Epilogue& epilogue = {},
                       Variant variant = Variant::automatic,
                       std::source_location caller = std::source_location::current())
    {
        if constexpr (detail::require_operands_of_launch<A, B, D>()) {
            detail::launch_gemm(stream, {detail::operand_of(a), detail::operand_of(b), detail::operand_of(d)}, epilogue,
                                variant, Workspace(), caller);
        }
    }

    /// Enqueues the same with the caller's workspace, or with a limit on the library's own. The fastest kernel whose
    /// workspace fits is chosen. `Workspace()` is the same as leaving the argument out.
    ///
    /// @param workspace  memory of the stream's device, or `Workspace::at_most(bytes)`
    /// @throws Error  as above; `out_of_range` if the workspace is too small for `variant`, `misaligned` if its address
    ///                is not a multiple of `Workspace::alignment`, `device_mismatch`, `aliasing` if it overlaps an
    ///                operand
    template <class A, class B, class D>
    static void launch(StreamRef stream, const A& a, const B& b, const D& d, const Epilogue& epilogue, Variant variant,
                       Workspace workspace, std::source_location caller = std::source_location::current())
    {
        if constexpr (detail::require_operands_of_launch<A, B, D>()) {
            detail::launch_gemm(stream, {detail::operand_of(a), detail::operand_of(b), detail::operand_of(d)}, epilogue,
                                variant, workspace, caller);
        }
    }

    /// Enqueues D = function(A*B, operands ...) with a function of your own: `tile::epilogue`. Include tessera/tile/gemm.cuh in a
    /// CUDA source, where the function is compiled ahead of time, or tessera/tile/epilogue_program.hpp anywhere, for a
    /// function in a text that is compiled at run time.
    ///
    /// The operands have types that tensor cores multiply, all but f32, and are views, not `MatrixOperand`. Nothing is
    /// allocated. The operands of the function must not overlap D.
    ///
    /// @throws Error  as above, and as `tile::launch`
    template <class A, class B, class D, detail::UserEpilogue Own>
    static void launch(StreamRef stream, const A& a, const B& b, const D& d, const Own& epilogue,
                       std::source_location caller = std::source_location::current())
    {
        if constexpr (detail::require_operands_of_launch<A, B, D>()) {
            detail::require_tensor_core_product(
                stream, {detail::operand_of(a), detail::operand_of(b), detail::operand_of(d)}, caller);
            epilogue.launch(stream, a, b, d, caller);
        }
    }

    /// Refuses to compile if something else is in the epilogue's place, with a message that says where it belongs.
    template <class A, class B, class D, detail::NoEpilogue Other, class... Rest>
    static void launch(StreamRef /*stream*/, const A& /*a*/, const B& /*b*/, const D& /*d*/, const Other& /*epilogue*/,
                       const Rest&... /*rest*/)
    {
        detail::refuse_as_epilogue<Other>();
    }

    /// Measures which kernel is the fastest for `problem` on `device`. Automatic launches and plans of that problem use
    /// it from then on. Include tessera/gemm_tuner.hpp, which says what is stored where.
    ///
    /// Blocks for about a second, and allocates operands of its own. Nothing else should use the device meanwhile.
    ///
    /// @param device   the device to measure on
    /// @param problem  extents, types, orders and epilogue; the measured choice serves launches of this problem
    /// @param options  how thorough the measurement is
    /// @throws Error  `invalid_argument` for a problem with an empty D or for options out of their range,
    ///                `size_overflow` for operands that cannot exist, `out_of_memory`, `unsupported_device`
    static TuningResult tune(const Device& device, const GemmProblem& problem, const TuningOptions& options,
                             std::source_location caller = std::source_location::current());
    /// Measures with the default options.
    static TuningResult tune(const Device& device, const GemmProblem& problem,
                             std::source_location caller = std::source_location::current());
};

/// A problem whose kernel has been chosen, so that its launches choose nothing. A launch with operands, epilogue and
/// workspace that one of the plan's latest launches had makes no checks, either, and encodes no tensor maps again.
///
/// @code{.cpp}
/// const GemmProblem shape{.m = m, .n = n, .k = k, .input = ElementType::bf16};
/// const auto plan = GemmPlan::prepare(device, shape);
/// plan.launch(stream, a16, b16, d.matrix(m, n));
/// std::puts(plan.explain().c_str());
/// @endcode
///
/// A plan owns no device memory. The contract of its launches is that of `Gemm`.
///
/// @par Thread safety
/// A value: it may be copied, and several threads may launch the same plan at once.
class GemmPlan {
public:
    /// Chooses a kernel for `problem` on `device`. Enqueues nothing.
    ///
    /// @param device   the device of all launches
    /// @param problem  extents, types, orders, leading dimensions, alignment and epilogue
    /// @param variant  the kernel to use, or `automatic`
    /// @throws Error  `invalid_argument` for impossible extents, types or strides, `size_overflow` for operands larger
    ///                than 63 bits can count, `variant_refused` with the reason if `variant` is not eligible,
    ///                `unsupported_device` if no kernel runs on the device
    static GemmPlan prepare(const Device& device, const GemmProblem& problem, Variant variant = Variant::automatic,
                            std::source_location caller = std::source_location::current());
    /// Chooses among the kernels whose launches need a workspace of at most `workspace_limit` bytes. With 0, no launch
    /// of the plan allocates.
    static GemmPlan prepare(const Device& device, const GemmProblem& problem, Variant variant,
                            std::size_t workspace_limit, std::source_location caller = std::source_location::current());

    /// Enqueues the product as `Gemm::launch` does, with the kernel of the plan. An operand may be better aligned than
    /// the plan says.
    ///
    /// @throws Error  `shape_mismatch` with the differences if the operands are not what the plan was prepared for:
    ///                extents, types, orders, leading dimensions, alignment or kind of epilogue; `device_mismatch`,
    ///                `aliasing`, `invalid_argument` and `out_of_memory` as for `Gemm::launch`
    template <class A, class B, class D>
    void launch(StreamRef stream, const A& a, const B& b, const D& d, const Epilogue& epilogue = {},
                std::source_location caller = std::source_location::current()) const
    {
        if constexpr (detail::require_operands_of_launch<A, B, D>()) {
            launch_checked(stream, {detail::operand_of(a), detail::operand_of(b), detail::operand_of(d)}, epilogue,
                           Workspace(), caller);
        }
    }

    /// Enqueues the same with the caller's workspace.
    ///
    /// @param workspace  at least `workspace_bytes()` bytes, at a multiple of `Workspace::alignment`
    /// @throws Error  as above; `out_of_range` if the workspace is too small, `misaligned`, `device_mismatch`,
    ///                `aliasing`
    template <class A, class B, class D>
    void launch(StreamRef stream, const A& a, const B& b, const D& d, const Epilogue& epilogue, Workspace workspace,
                std::source_location caller = std::source_location::current()) const
    {
        if constexpr (detail::require_operands_of_launch<A, B, D>()) {
            launch_checked(stream, {detail::operand_of(a), detail::operand_of(b), detail::operand_of(d)}, epilogue,
                           workspace, caller);
        }
    }

    /// Refuses to compile if something else is in the epilogue's place, with a message that says where it belongs.
    template <class A, class B, class D, detail::NoEpilogue Other, class... Rest>
    void launch(StreamRef /*stream*/, const A& /*a*/, const B& /*b*/, const D& /*d*/, const Other& /*epilogue*/,
                const Rest&... /*rest*/) const
    {
        detail::refuse_as_epilogue<Other>();
    }

    /// The problem that the plan was prepared for, with all leading dimensions filled in.
    const GemmProblem& problem() const noexcept { return problem_; }
    /// The chosen variant, never `automatic`.
    Variant variant() const noexcept { return choice_.variant; }
    /// Bytes of device memory that a launch needs besides its operands. Not 0 if several clusters add up one tile, or
    /// if operands are repacked: copies of operands are as large as the operands, up to a sixteenth of the device's
    /// memory.
    ///
    /// A launch that is given a `Workspace` uses that. The others use the library's own memory: launches on one stream
    /// share a block, and so do the launches captured from one stream into a graph, which keeps its block until the
    /// graph and its executables are gone. `prepare` takes a limit.
    std::size_t workspace_bytes() const noexcept;
    /// Takes the library's own workspaces on `device` from `resource` from now on, and gives them back to it. An empty
    /// reference restores the device's pool. Existing workspaces stay as they are; graphs keep memory from cudaMalloc.
    ///
    /// Before the resource dies, set another one and call release_workspaces(). Thread-safe.
    /// @throws Error  `unsupported_device` for a device beyond the 64th
    static void set_workspace_resource(const Device& device, MemoryResourceRef resource,
                                       std::source_location caller = std::source_location::current());
    /// Waits for the devices and frees the library's workspaces of all streams. A later launch allocates again.
    ///
    /// Without this call, a `Stream` frees its workspace when it is destroyed, and the process frees the rest. Must not
    /// be called while a stream is being captured. Failures go to `dropped_errors()`.
    static void release_workspaces() noexcept;
    /// Bytes that the addresses and strides of A and B must be multiples of for the chosen variant.
    std::size_t required_alignment() const noexcept { return required_alignment(choice_.variant, problem_.input); }
    /// Bytes that the addresses and strides of A and B must be multiples of for any variant and element types.
    static std::size_t required_alignment(Variant variant, InputTypes input) noexcept;

    /// Returns why `variant` cannot compute `problem` on `device`, as a sentence; empty if it can. Speed plays no part.
    static std::string refusal(const GemmProblem& problem, const DeviceProperties& device, Variant variant);

    /// Returns a text for people: which variant runs the plan's problem and why, and why each other variant does not.
    std::string explain() const;

    /// Returns the same for any problem on any device, which need not be present.
    static std::string explain(const GemmProblem& problem, const DeviceProperties& device,
                               Variant variant = Variant::automatic);

private:
    GemmPlan(const GemmProblem& problem, const DeviceProperties& device, int ordinal, Variant wanted,
             std::size_t workspace_limit, const detail::KernelChoice& chosen)
        : problem_(problem),
          properties_(&device),
          device_(ordinal),
          wanted_(wanted),
          workspace_limit_(workspace_limit),
          choice_(chosen)
    {}
    void launch_checked(StreamRef stream, const detail::GemmOperands& operands, const Epilogue& epilogue,
                        const Workspace& workspace, const std::source_location& caller) const;

    GemmProblem problem_;
    const DeviceProperties* properties_;  // owned by Device, alive as long as the process
    int device_;
    Variant wanted_;  // requested by the caller, perhaps automatic
    std::size_t workspace_limit_;
    detail::KernelChoice choice_;
    detail::SeenLaunchesRef seen_;
};

}  // namespace tessera
