#include "peers/cublaslt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include "peers/activations.hpp"
#include "report/gemm_summary.hpp"
#include "tessera/device_buffer.hpp"

namespace tessera::bench {
namespace {

// Twice NVIDIA's recommendation for Hopper and Blackwell (32 MiB), so that it limits no algorithm.
constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

void check(cublasStatus_t status, const char* call)
{
    if (status != CUBLAS_STATUS_SUCCESS) {
        throw std::runtime_error(fmt::format("{} failed: {}", call, cublasLtGetStatusString(status)));
    }
}

cudaDataType_t data_type(ElementType type)
{
    switch (type) {
        case ElementType::f16: return CUDA_R_16F;
        case ElementType::bf16: return CUDA_R_16BF;
        case ElementType::f8e4m3: return CUDA_R_8F_E4M3;
        case ElementType::f8e5m2: return CUDA_R_8F_E5M2;
        case ElementType::f32:
        case ElementType::tf32: break;
    }
    return CUDA_R_32F;
}

/// Calls cuBLASLt's destroy function at the end of its life.
template <class Handle, cublasStatus_t (*destroy)(Handle)>
using Owned =
    std::unique_ptr<std::remove_pointer_t<Handle>, decltype([](Handle handle) { static_cast<void>(destroy(handle)); })>;
using Description = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

Layout make_layout(ElementType type, std::int64_t rows, std::int64_t columns, std::int64_t leading_dimension)
{
    cublasLtMatrixLayout_t layout = nullptr;
    check(cublasLtMatrixLayoutCreate(&layout, data_type(type), static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), leading_dimension),
          "cublasLtMatrixLayoutCreate");
    return Layout(layout);
}

cublasLtEpilogue_t epilogue_of(Fusion fusion)
{
    switch (fusion) {
        case Fusion::bias:
        case Fusion::bias_silu: return CUBLASLT_EPILOGUE_BIAS;  // a kernel follows
        case Fusion::bias_relu: return CUBLASLT_EPILOGUE_RELU_BIAS;
        case Fusion::bias_gelu:
        case Fusion::bias_gelu_tanh: return CUBLASLT_EPILOGUE_GELU_BIAS;
        case Fusion::none:
        case Fusion::swiglu:         // a kernel follows
        case Fusion::residual:       // C is added by beta
        case Fusion::scaled: break;  // the factors belong to the operands
    }
    return CUBLASLT_EPILOGUE_DEFAULT;
}

/// Returns true if cuBLASLt has no such activation, so that a kernel of its own follows.
bool needs_kernel(Fusion fusion) { return fusion == Fusion::bias_silu || fusion == Fusion::swiglu; }

/// A product as cuBLASLt sees it. cuBLASLt is column-major: a row-major D is the column-major D^T = B^T * A^T, and a
/// row-major B has the same memory layout as B^T.
struct Product {
    explicit Product(const Task& task)
    {
        const Problem& problem = task.problem;
        const auto [m, n, k] = problem.shape;
        const bool a_rows = problem.orders.a_row_major;
        const bool b_rows = problem.orders.b_row_major;
        cublasLtMatmulDesc_t created = nullptr;
        check(cublasLtMatmulDescCreate(
                  &created, problem.input == ElementType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                  CUDA_R_32F),
              "cublasLtMatmulDescCreate");
        description.reset(created);
        set(CUBLASLT_MATMUL_DESC_TRANSA, b_rows ? CUBLAS_OP_N : CUBLAS_OP_T);
        set(CUBLASLT_MATMUL_DESC_TRANSB, a_rows ? CUBLAS_OP_N : CUBLAS_OP_T);
        if (is_float8(problem.input)) {
            const bool is_fast = problem.accumulation == Fp8Accumulation::fast;
            set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(is_fast ? 1 : 0));
        }
        set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(problem.fusion));
        if (has_bias(problem.fusion)) {
            // The bias runs along the rows of cuBLASLt's result, which are D's columns.
            set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, task.bias.output_type);
            set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(problem.output));
        }
        if (has_scales(problem.fusion)) {
            set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, task.scales.b);  // its A is our B
            set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, task.scales.a);
        }
        left = make_layout(problem.input, b_rows ? n : k, b_rows ? k : n, problem.b_leading_dimension());
        right = make_layout(problem.input, a_rows ? k : m, a_rows ? m : k, problem.a_leading_dimension());
        output = make_layout(problem.output, n, m, n);
    }

    template <class Value>
    void set(cublasLtMatmulDescAttributes_t attribute, Value value) const
    {
        // NOLINTNEXTLINE(bugprone-multi-level-implicit-pointer-conversion): the value may be a pointer
        check(cublasLtMatmulDescSetAttribute(description.get(), attribute, &value, sizeof value),
              "cublasLtMatmulDescSetAttribute");
    }

    Description description;
    Layout left;
    Layout right;
    Layout output;
};

EpilogueArithmetic epilogue_arithmetic(const Problem& problem)
{
    return {GeluForm::tanh, true, needs_kernel(problem.fusion)};
}
constexpr const char* no_algorithm = "cuBLASLt has no algorithm for this problem";

Accumulation accumulation_of(const Problem& problem)
{
    return is_float8(problem.input) ? Accumulation::hopper_fp8 : Accumulation::tensor_core;
}

}  // namespace

CublasLt::CublasLt(StreamRef stream) : workspace_(stream, workspace_bytes)
{
    check(cublasLtCreate(&handle_), "cublasLtCreate");
}

CublasLt::~CublasLt() { cublasLtDestroy(handle_); }

std::vector<Enqueue> CublasLt::candidates(const Task& task, std::size_t most) const
{
    const auto product = std::make_shared<const Product>(task);
    cublasLtMatmulPreference_t created = nullptr;
    check(cublasLtMatmulPreferenceCreate(&created), "cublasLtMatmulPreferenceCreate");
    const Preference preference(created);
    check(cublasLtMatmulPreferenceSetAttribute(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &workspace_bytes, sizeof workspace_bytes),
          "cublasLtMatmulPreferenceSetAttribute");

    std::vector<cublasLtMatmulHeuristicResult_t> results(most);
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle_, product->description.get(), product->left.get(), product->right.get(), product->output.get(),
        product->output.get(), preference.get(), static_cast<int>(most), results.data(), &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
        return {};
    }
    check(status, "cublasLtMatmulAlgoGetHeuristic");

    // Gated pairs are computed from all columns, which cuBLASLt stores here.
    const auto pairs = std::make_shared<DeviceBuffer<unsigned char>>(
        task.stream, is_gated(task.problem.fusion) ? 2 * task.problem.d_size() * size_of(task.problem.output) : 0);
    std::vector<Enqueue> enqueues;
    for (const cublasLtMatmulHeuristicResult_t& result : gsl::span(results).first(static_cast<std::size_t>(count))) {
        if (result.state != CUBLAS_STATUS_SUCCESS) {
            continue;
        }
        enqueues.emplace_back([handle = handle_, workspace = const_cast<unsigned char*>(workspace_.data()), product,
                               algorithm = result.algo, sets = task.sets, pairs,
                               problem = task.problem](StreamRef stream, std::size_t set) {
            const float alpha = 1;
            const Operands& operands = sets[set];
            const float beta = operands.c != nullptr ? 1 : 0;
            void* const d = is_gated(problem.fusion) ? pairs->data() : operands.d;
            const void* const c = operands.c != nullptr ? operands.c : d;
            check(cublasLtMatmul(handle, product->description.get(), &alpha, operands.b, product->left.get(),
                                 operands.a, product->right.get(), &beta, c, product->output.get(), d,
                                 product->output.get(), &algorithm, workspace, workspace_bytes, stream.get()),
                  "cublasLtMatmul");
            if (is_gated(problem.fusion)) {
                enqueue_swiglu(stream, problem.output, d, operands.d, problem.shape.m, problem.d_columns());
            } else if (needs_kernel(problem.fusion)) {
                enqueue_silu(stream, problem.output, d, problem.shape.m, problem.shape.n);
            }
        });
    }
    return enqueues;
}

std::string CublasLt::version()
{
    const std::size_t number = cublasLtGetVersion();  // 10000 * major + 100 * minor + patch
    return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

std::vector<GemmContender> cublaslt_contenders(const CublasLt& cublaslt)
{
    const auto heuristic = [&cublaslt](const Task& task) -> Prepared {
        std::vector<Enqueue> found = cublaslt.candidates(task, 1);
        return found.empty() ? Prepared{{}, no_algorithm}
                             : Prepared{std::move(found.front()),
                                        {},
                                        accumulation_of(task.problem),
                                        true,
                                        epilogue_arithmetic(task.problem)};
    };
    const auto best = [&cublaslt](const Task& task) -> Prepared {
        std::vector<Enqueue> found = cublaslt.candidates(task, cublaslt_candidates);
        if (found.empty()) {
            return {{}, no_algorithm};
        }
        const std::vector<double> seconds = task.race(found);
        const auto fastest =
            static_cast<std::size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
        return {std::move(found[fastest]), fmt::format("candidate {} of {}", fastest + 1, found.size()),
                accumulation_of(task.problem), true, epilogue_arithmetic(task.problem)};
    };
    return {{std::string(heuristic_name), heuristic}, {std::string(best_name), best}};
}

}  // namespace tessera::bench
