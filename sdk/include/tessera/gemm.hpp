#pragma once

/// Matrix multiplication: `Gemm::launch`, and `GemmPlan`, the same thing prepared once.
///
///     Gemm::launch(stream, a.matrix(m, k), b.matrix(k, n), d.matrix(m, n));
///     Gemm::launch(stream, x, w, y, {.bias = Bias::per_column(b.span()), .activation = Activation::relu});
///
/// Contract of every launch:
///   - D = act(alpha * A*B + beta * C + bias), accumulated in fp32, rounded once to D's type. SIMT kernels add the
///     products one by one in ascending k, so that all of them give the same bits; tensor cores add several at once as
///     their hardware does, which is documented with each variant. The same problem on the same device model and build
///     of the library gives the same bits every time.
///   - A and B have the same type, or one is f8e4m3 and the other f8e5m2.
///   - Asynchronous on the stream: one kernel, no allocation, no wait; can be captured into a graph; may be called from
///     several threads. Operands must stay alive and unchanged until the kernel has finished. The exceptions:
///       - A stream's first launch of a plan with a workspace allocates it, and so does a larger one
///         (`GemmPlan::workspace_bytes`), unless the launch is given one (`Workspace`). A memset of a few hundred bytes
///         then comes before the kernel, if several clusters add up one tile.
///       - On compute capability 9.0 one more kernel comes first where large operands that TMA cannot load are repacked.
///       - Two levels of batches whose strides do not fold into one are a kernel per batch of the level with fewer.
///         Strides fold if, for A, B, D and C alike, the outer one is the inner one times the inner count, or both
///         are 0. If CUDA fails in the middle of them, the kernels before are enqueued.
///     `GemmPlan::explain` tells which of them a problem meets.
///   - Extents may be 0: an empty D launches nothing; k = 0 gives act(beta * C + bias).
///   - C is not read if beta is 0; a beta that is not given is 1 with a C. A, B and their scales are not read if alpha
///     is 0 (as in BLAS, NaN there does not spread then).
///   - D may be C (the same view). D must not overlap A, B, a scale or the bias, nor C in any other way, and its
///     matrices must not overlap each other.
///   - A refusal is an Error with the values that broke the rule; nothing was enqueued then.
///
/// Thread safety: `Bias`, `Epilogue` and `GemmPlan` are values. Several threads may use copies, or read the same one.

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

struct TuningOptions;  // gemm_tuner.hpp
struct TuningResult;

/// A vector that is added to every column or every row of the product. Non-owning. Shared by all matrices of a batch.
struct Bias {
    const void* data = nullptr;           ///< device address of the first element
    ElementType type = ElementType::f32;  ///< of each element; need not be D's
    std::size_t size = 0;                 ///< in elements
    BiasAxis axis = BiasAxis::none;       ///< `none`: there is no bias
    int device = -1;                      ///< the ordinal of the memory's device, -1 for none

    /// None.
    Bias() = default;

    /// Anything else: does not compile, and says what to pass.
    template <class Other>
        requires(!std::same_as<Other, Bias>)
    Bias(const Other& /*other*/) noexcept
    {
        detail::refuse_as_bias<Other>();
    }

    /// m elements: element i is added to all of row i of D.
    template <class T>
    static Bias per_row(DeviceSpan<T> vector) noexcept
    {
        return make(vector, BiasAxis::per_row);
    }
    /// n elements: element j is added to all of column j of D. What a layer of a neural network calls its bias when the
    /// rows of D are samples.
    template <class T>
    static Bias per_column(DeviceSpan<T> vector) noexcept
    {
        return make(vector, BiasAxis::per_column);
    }

    /// Of anything else: does not compile, and says what to pass.
    template <class Other>
    static Bias per_row(const Other& /*other*/) noexcept
    {
        detail::refuse_as_bias<Other>();
        return {};
    }
    /// Likewise.
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
        using Element = std::remove_const_t<detail::ElementOf<T>>;  // of CUDA's own types, ours
        static_assert(OutputElement<Element>, "tessera: a bias has elements of f32, f16 or bf16");
        Bias bias;
        if constexpr (OutputElement<Element>) {
            bias.data = vector.data();
            bias.type = element_traits<Element>::type;
            bias.size = vector.size();
            bias.axis = axis;
            bias.device = vector.device();
        }
        return bias;
    }
};

/// What happens to the product on its way to D: act(alpha * A*B + beta * C + bias), where alpha is `alpha`, times
/// `scale_a`, times `scale_b`, each product rounded to fp32.
///
/// Written with designated initializers, which C++ wants in this order: alpha, beta, c, bias, activation, scale_a,
/// scale_b, fp8_accumulation.
struct Epilogue {
    float alpha = 1.0F;                        ///< scales the product
    std::optional<float> beta = {};            ///< scales C; not given, it is 1 with a C. At 0, C is not read
    MatrixOperand c = {};                      ///< of D's type and extents, in any order; one matrix serves a batch
    Bias bias = {};                            ///< added after scaling; `Bias{}` for none
    Activation activation = Activation::none;  ///< applied last
    DeviceSpan<const float> scale_a = {};      ///< one float on the device, read by the kernel: A's scale; or none
    DeviceSpan<const float> scale_b = {};      ///< the same for B
    Fp8Accumulation fp8_accumulation = Fp8Accumulation::two_level;  ///< for 8-bit inputs on Hopper's tensor cores
};

namespace detail {

struct GemmOperands {
    MatrixOperand a;
    MatrixOperand b;
    MatrixOperand d;
};

/// What C is scaled by.
inline float beta_of(const Epilogue& epilogue) noexcept
{
    return epilogue.beta ? *epilogue.beta : epilogue.c.present ? 1.0F : 0.0F;
}

void launch_gemm(StreamRef stream, const GemmOperands& operands, const Epilogue& epilogue, Variant variant,
                 const Workspace& workspace, const std::source_location& caller);

/// What is in the place of an epilogue and is none. `{...}` is no type, and makes one.
template <class T>
concept NoEpilogue = !std::convertible_to<const T&, const Epilogue&>;

}  // namespace detail

/// Matrix multiplication without a plan. The top of this file has the contract of every launch.
///
/// Thread safety: everything here may be called from several threads at once, also for the same operands and stream.
class Gemm {
public:
    /// Enqueues D = act(alpha * A*B + beta * C + bias) on `stream`; see the top of this file for the whole contract.
    ///
    /// A, B and D are each a MatrixView, a BatchView or a MatrixOperand, in any mix. A batch is multiplied at once, and
    /// one matrix, or a batch stride of 0, beside batches is used for all of them; D has a matrix for each product.
    ///
    /// @param a         m x k, either order, any leading dimension
    /// @param b         k x n, likewise, of A's element type (8-bit types may be mixed)
    /// @param d         m x n, likewise; of f32, f16 or bf16, whatever A and B are
    /// @param epilogue  scales, addend, bias and activation
    /// @param variant   the kernel to use, or `automatic`
    /// @throws Error `shape_mismatch`, `aliasing`, `device_mismatch`, `variant_refused`, `invalid_argument`
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

    /// The same with a workspace of the caller's, or with a limit on the library's own: the fastest kernel that can do
    /// with it is chosen. `Workspace()` is as if none were given.
    /// @throws Error as above; `misaligned`, `device_mismatch`, `aliasing` for the workspace
    template <class A, class B, class D>
    static void launch(StreamRef stream, const A& a, const B& b, const D& d, const Epilogue& epilogue, Variant variant,
                       Workspace workspace, std::source_location caller = std::source_location::current())
    {
        if constexpr (detail::require_operands_of_launch<A, B, D>()) {
            detail::launch_gemm(stream, {detail::operand_of(a), detail::operand_of(b), detail::operand_of(d)}, epilogue,
                                variant, workspace, caller);
        }
    }

    /// With something else in the epilogue's place: does not compile, and says where it belongs.
    template <class A, class B, class D, detail::NoEpilogue Other, class... Rest>
    static void launch(StreamRef /*stream*/, const A& /*a*/, const B& /*b*/, const D& /*d*/, const Other& /*epilogue*/,
                       const Rest&... /*rest*/)
    {
        detail::refuse_as_epilogue<Other>();
    }

    /// Measures which kernel is the fastest for `problem` on `device`, with operands of its own, and makes automatic
    /// launches and plans of that problem use it from now on. Blocks, for about a second; include
    /// tessera/gemm_tuner.hpp, which says what is kept where. Take the device for yourself meanwhile.
    /// @throws Error `invalid_argument` for a problem with an empty D, `size_overflow` for operands that cannot exist,
    ///               `out_of_memory`, `unsupported_device`
    static TuningResult tune(const Device& device, const GemmProblem& problem, const TuningOptions& options,
                             std::source_location caller = std::source_location::current());
    /// The same with the default options.
    static TuningResult tune(const Device& device, const GemmProblem& problem,
                             std::source_location caller = std::source_location::current());
};

/// A problem whose kernel has been chosen. A value without memory: it may be copied and used from several threads.
class GemmPlan {
public:
    /// Chooses for `device`. @throws Error `variant_refused` with the reason if `variant` is not eligible,
    /// `invalid_argument` for impossible extents
    static GemmPlan prepare(const Device& device, const GemmProblem& problem, Variant variant = Variant::automatic,
                            std::source_location caller = std::source_location::current());
    /// The same, of those kernels whose launches need a workspace of at most `workspace_limit` bytes. With 0, no launch
    /// of the plan allocates.
    static GemmPlan prepare(const Device& device, const GemmProblem& problem, Variant variant,
                            std::size_t workspace_limit, std::source_location caller = std::source_location::current());

    /// Enqueues the product as Gemm::launch does.
    /// @throws Error `shape_mismatch` if the operands are not what the plan was prepared for: extents, types, orders,
    ///               leading dimensions, alignment or kind of epilogue
    template <class A, class B, class D>
    void launch(StreamRef stream, const A& a, const B& b, const D& d, const Epilogue& epilogue = {},
                std::source_location caller = std::source_location::current()) const
    {
        if constexpr (detail::require_operands_of_launch<A, B, D>()) {
            launch_checked(stream, {detail::operand_of(a), detail::operand_of(b), detail::operand_of(d)}, epilogue,
                           Workspace(), caller);
        }
    }

    /// The same with a workspace of the caller's of at least `workspace_bytes()`.
    /// @throws Error as above; `out_of_range` if the workspace is too small, `misaligned`, `device_mismatch`, `aliasing`
    template <class A, class B, class D>
    void launch(StreamRef stream, const A& a, const B& b, const D& d, const Epilogue& epilogue, Workspace workspace,
                std::source_location caller = std::source_location::current()) const
    {
        if constexpr (detail::require_operands_of_launch<A, B, D>()) {
            launch_checked(stream, {detail::operand_of(a), detail::operand_of(b), detail::operand_of(d)}, epilogue,
                           workspace, caller);
        }
    }

    /// With something else in the epilogue's place: does not compile, and says where it belongs.
    template <class A, class B, class D, detail::NoEpilogue Other, class... Rest>
    void launch(StreamRef /*stream*/, const A& /*a*/, const B& /*b*/, const D& /*d*/, const Other& /*epilogue*/,
                const Rest&... /*rest*/) const
    {
        detail::refuse_as_epilogue<Other>();
    }

    /// What the plan was prepared for, leading dimensions filled in.
    const GemmProblem& problem() const noexcept { return problem_; }
    /// The chosen variant, never `automatic`.
    Variant variant() const noexcept { return choice_.variant; }
    /// Bytes of device memory that a launch needs besides its operands: not 0 if several clusters add up one tile, or
    /// if operands are repacked, which takes as much as they have, up to a sixteenth of the device's memory. `prepare`
    /// takes a limit. It is the caller's, if a launch is given it, or else the library's own. Launches on one stream
    /// share that, and so do the launches captured from one stream into a graph, which keeps it until the graph and its
    /// executables are gone.
    std::size_t workspace_bytes() const noexcept;
    /// From now on the library's own workspaces on `device` come from `resource` and go back to it; an empty reference
    /// means the device's pool again. What is there already stays as it is, and graphs have memory from cudaMalloc.
    /// Before the resource dies, set another one and call release_workspaces(). Thread-safe.
    /// @throws Error `unsupported_device` for a device beyond the 64th
    static void set_workspace_resource(const Device& device, MemoryResourceRef resource,
                                       std::source_location caller = std::source_location::current());
    /// Waits for the devices and gives back the memory that the launches of all streams have needed; a later launch
    /// makes its own again. Without this call, a `Stream` gives its part back when it is destroyed, and the process the
    /// rest. Not while a stream is being captured. What fails goes to `dropped_errors()`.
    static void release_workspaces() noexcept;
    /// What the chosen variant needs the addresses and strides of A and B to be multiples of, in bytes.
    std::size_t required_alignment() const noexcept { return required_alignment(choice_.variant, problem_.input); }
    /// The same for any variant and element types of A and B.
    static std::size_t required_alignment(Variant variant, InputTypes input) noexcept;

    /// Why `variant` cannot compute `problem` on `device`, as a sentence; empty if it can. Speed plays no part in it.
    static std::string refusal(const GemmProblem& problem, const DeviceProperties& device, Variant variant);

    /// Which variant runs this plan's problem, why, and why each other one does not: text for people.
    std::string explain() const;

    /// The same for any problem on any device, also one that is not present.
    static std::string explain(const GemmProblem& problem, const DeviceProperties& device,
                               Variant variant = Variant::automatic);

private:
    GemmPlan(const GemmProblem& problem, const DeviceProperties& device, int ordinal, Variant wanted,
             std::size_t workspace_limit, const detail::KernelChoice& chosen) noexcept
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
    const DeviceProperties* properties_;  // Device's, which live as long as the process
    int device_;
    Variant wanted_;  // by the caller, perhaps automatic
    std::size_t workspace_limit_;
    detail::KernelChoice choice_;
};

}  // namespace tessera
