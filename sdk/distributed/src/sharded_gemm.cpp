#include "tessera/distributed/sharded_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "communicator_state.hpp"
#include "schedule.hpp"
#include "sharded_checks.hpp"
#include "tessera/error.hpp"
#include "tessera/event.hpp"

namespace tessera::distributed {
namespace detail {

/// A product of the schedule: the kernel for it.
struct PlannedProduct {
    GemmProblem problem;
    GemmPlan plan;
};

struct Operands {
    ShardedMatrix a;
    ShardedMatrix b;
    ShardedMatrix d;
    Epilogue epilogue;
};

struct ShardedPlan {
    std::shared_ptr<CommunicatorState> state;
    Operands given;
    ModelRates rates;
    Schedule schedule;
    RegisteredRange* gathered = nullptr;
    RegisteredRange* summed = nullptr;
    std::vector<PlannedProduct> products;
    std::vector<std::size_t> product_of_step;  // for steps that are products
    std::vector<Event> events;                 // of steps that others wait for, then of the begin and the end
    std::vector<std::size_t> event_of_step;

    ShardedPlan(std::shared_ptr<CommunicatorState> owner, const Operands& operands)
        : state(std::move(owner)), given(operands)
    {}
    ShardedPlan(const ShardedPlan&) = delete;
    ShardedPlan& operator=(const ShardedPlan&) = delete;
    ~ShardedPlan()
    {
        for (RegisteredRange* const range : {summed, gathered}) {
            if (range != nullptr) {
                state->free(range);
            }
        }
    }
};

}  // namespace detail

namespace {

using detail::NcclResult;
using detail::NcclType;
using detail::Operands;
using detail::Place;
using detail::ShardedPlan;
using detail::Step;
using tessera::detail::raise;

// What the model counts with where nothing is given. docs/tensor-parallel.md says what was measured.
constexpr double hopper_16_bit_flops_of_sm = 5.5e12;
constexpr double launch_seconds = 4e-6;
constexpr detail::LinkRates copies_of_nvlink{.bytes = 380e9, .latency = 20e-6};
constexpr detail::LinkRates kernels_of_nvlink{.bytes = 220e9, .latency = 10e-6};
constexpr int ctas_by_nccl = 24;  // if NCCL chooses

/// Operations per second of one SM. Of devices other than Hopper's from their data sheets, at 80 %.
double flops_of_sm(const DeviceProperties& device, ElementType type)
{
    const double sixteen_bit = device.compute_capability_major >= 10  ? 12e12
                               : device.compute_capability_major == 9 ? hopper_16_bit_flops_of_sm
                               : device.compute_capability() == 80    ? 2.3e12
                                                                      : 1e12;
    switch (size_of(type)) {
        case 1: return 2 * sixteen_bit;
        case 2: return sixteen_bit;
        default: return type == ElementType::tf32 ? sixteen_bit / 2 : 0.4e12;
    }
}

detail::ModelRates rates_of(const detail::CommunicatorState& state, const ShardedGemmOptions& options, ElementType type)
{
    const DeviceProperties& device = state.device().properties();
    detail::ModelRates rates{
        .flops = options.flops_per_second,
        .sms = std::max(device.sm_count, 1),
        .sms_of_communication = state.options().max_ctas > 0 ? state.options().max_ctas : ctas_by_nccl,
        .kernels = kernels_of_nvlink,
        .copies = copies_of_nvlink,
        .launch = launch_seconds};
    if (rates.flops <= 0) {
        rates.flops = flops_of_sm(device, type) * rates.sms;
    }
    if (options.link_bytes_per_second > 0) {
        rates.kernels.bytes = options.link_bytes_per_second;
        rates.copies.bytes = options.link_bytes_per_second;
    }
    return rates;
}

/// Returns `rows` rows of a matrix, from `first` on.
MatrixOperand rows_of(MatrixOperand matrix, std::int64_t first, std::int64_t rows)
{
    const std::int64_t stride = matrix.row_major ? matrix.leading_dimension : 1;
    matrix.data =
        static_cast<const std::byte*>(matrix.data) + first * stride * static_cast<std::int64_t>(size_of(matrix.type));
    matrix.rows = rows;
    return matrix;
}

/// Returns the plan's memory as a matrix.
MatrixOperand memory_of(const ShardedPlan& plan, Place place)
{
    const detail::Schedule& schedule = plan.schedule;
    const bool sums = place == Place::summed;
    const detail::RegisteredRange* const range = sums ? plan.summed : plan.gathered;
    MatrixOperand matrix;
    matrix.data = range == nullptr ? nullptr : range->data;
    matrix.type = sums ? plan.given.d.local.type : plan.given.a.local.type;
    matrix.rows = sums ? schedule.rows_summed : schedule.rows_gathered;
    matrix.columns = sums ? schedule.shape.n : schedule.shape.k;
    matrix.leading_dimension = std::max<std::int64_t>(matrix.columns, 1);
    matrix.present = true;
    matrix.writable = true;
    matrix.device = plan.state->device().ordinal();
    return matrix;
}

MatrixOperand matrix_at(const ShardedPlan& plan, Place place, const MatrixOperand& given)
{
    return place == Place::given ? given : memory_of(plan, place);
}

/// The operands of one product of the schedule.
struct Product {
    MatrixOperand a;
    MatrixOperand b;
    MatrixOperand d;
    Epilogue epilogue;
};

Product product_of(const ShardedPlan& plan, const Operands& operands, const Step& step)
{
    const auto rows_in = [&](Place place, const MatrixOperand& given, std::int64_t first) {
        return rows_of(matrix_at(plan, place, given), first, step.rows);
    };
    Product product{rows_in(step.a, operands.a.local, step.a_row), operands.b.local,
                    rows_in(step.d, operands.d.local, step.d_row), operands.epilogue};
    if (!step.is_last) {
        product.epilogue.bias = {};
        product.epilogue.activation = Activation::none;
    }
    if (step.c != Place::none) {
        product.epilogue.c = rows_in(step.c, operands.d.local, step.c_row);
        product.epilogue.beta = 1.0F;
    }
    return product;
}

MatrixLayout layout_of(const MatrixOperand& matrix)
{
    constexpr std::size_t most = 256;
    const auto address = std::bit_cast<std::uintptr_t>(matrix.data);
    const std::size_t alignment = address == 0 ? most : std::size_t{1} << std::countr_zero(address);
    return {.row_major = matrix.row_major,
            .leading_dimension = matrix.leading_dimension,
            .address_alignment = std::min(alignment, most)};
}

GemmProblem problem_of(const Product& product, int max_sms)
{
    const Epilogue& epilogue = product.epilogue;
    return {.m = product.a.rows,
            .n = product.b.columns,
            .k = product.a.columns,
            .input = {product.a.type, product.b.type},
            .output = product.d.type,
            .a = layout_of(product.a),
            .b = layout_of(product.b),
            .d = layout_of(product.d),
            .has_c = epilogue.c.present,
            .bias = epilogue.bias.axis,
            .activation = epilogue.activation,
            .fp8_accumulation = epilogue.fp8_accumulation,
            .f16_accumulation = epilogue.f16_accumulation,
            .column_scales = epilogue.scale_b.size() > 1,
            .gating = epilogue.gating,
            .max_sms = max_sms};
}

bool same_layout(const MatrixLayout& left, const MatrixLayout& right)
{
    return left.leading_dimension == right.leading_dimension && left.address_alignment == right.address_alignment;
}

/// Of one sharded product, only these differ.
bool same_problem(const GemmProblem& left, const GemmProblem& right)
{
    return left.m == right.m && left.has_c == right.has_c && left.bias == right.bias &&
           left.activation == right.activation && same_layout(left.a, right.a) && same_layout(left.d, right.d);
}

void plan_products(ShardedPlan& plan, const std::source_location& caller)
{
    const DeviceProperties& device = plan.state->device().properties();
    const bool leaves_sms = plan.schedule.overlaps && !plan.schedule.uses_copies;
    const int max_sms = leaves_sms ? std::max(device.sm_count - plan.rates.sms_of_communication, 1) : 0;
    for (const Step& step : plan.schedule.steps) {
        std::size_t index = 0;
        if (step.kind == Step::Kind::product) {
            const GemmProblem problem = problem_of(product_of(plan, plan.given, step), max_sms);
            while (index < plan.products.size() && !same_problem(plan.products[index].problem, problem)) {
                ++index;
            }
            if (index == plan.products.size()) {
                plan.products.push_back(
                    {problem, GemmPlan::prepare(plan.state->device(), problem, Variant::automatic, caller)});
            }
        }
        plan.product_of_step.push_back(index);
    }
}

void make_events(ShardedPlan& plan, const std::source_location& caller)
{
    for (const Step& step : plan.schedule.steps) {
        plan.event_of_step.push_back(plan.events.size());
        if (step.is_awaited) {
            plan.events.emplace_back(plan.state->device(), EventKind::ordering, caller);
        }
    }
    for (int i = 0; i < 2 && plan.schedule.overlaps; ++i) {
        plan.events.emplace_back(plan.state->device(), EventKind::ordering, caller);
    }
}

/// Enqueues steps of communication.
class Mover {
public:
    Mover(const ShardedPlan& plan, const Operands& operands, std::string_view operation,
          const std::source_location& caller)
        : plan_(plan), state_(*plan.state), operands_(operands), operation_(operation), caller_(caller)
    {}

    void enqueue(const Step& step, StreamRef stream) const
    {
        const detail::Nccl& nccl = state_.nccl();
        const void* const from = address(step.a, operands_.a.local, step.a_row);
        // A sum is stored to D, what is gathered never.
        void* const to = const_cast<void*>(address(step.d, operands_.d.local, step.d_row));
        const std::size_t count = bytes_of(step, step.rows);
        switch (step.kind) {
            case Step::Kind::product: return;
            case Step::Kind::send_receive: send_receive(step, from, to, stream); return;
            case Step::Kind::copy:
                tessera::detail::check(cudaMemcpyAsync(to, from, count, cudaMemcpyDeviceToDevice, stream.get()),
                                       "cudaMemcpyAsync", operation_, caller_);
                return;
            case Step::Kind::all_gather:
                require(nccl.all_gather(from, to, count, NcclType::uint8, comm_of(step), stream.get()),
                        "ncclAllGather");
                return;
            case Step::Kind::reduce_scatter:
                require(nccl.reduce_scatter(from, to, elements_of_d(step.rows), type_of_d(), detail::NcclOperation::sum,
                                            comm_of(step), stream.get()),
                        "ncclReduceScatter");
                return;
            case Step::Kind::all_reduce:
                require(nccl.all_reduce(to, to, elements_of_d(step.rows), type_of_d(), detail::NcclOperation::sum,
                                        comm_of(step), stream.get()),
                        "ncclAllReduce");
                return;
        }
    }

private:
    void require(NcclResult result, const char* call) const { state_.require(result, call, operation_, caller_); }
    ncclComm* comm_of(const Step& step) const { return state_.comm_of(plan_.schedule.line_of(step)); }
    std::size_t elements_of_d(std::int64_t rows) const
    {
        return static_cast<std::size_t>(rows * plan_.schedule.shape.n);
    }
    std::size_t bytes_of(const Step& step, std::int64_t rows) const
    {
        const detail::ShardedShape& shape = plan_.schedule.shape;
        return step.moves_a() ? static_cast<std::size_t>(rows * shape.k) * shape.a_bytes
                              : elements_of_d(rows) * shape.d_bytes;
    }
    NcclType type_of_d() const
    {
        const ElementType type = operands_.d.local.type;
        return type == ElementType::f32 ? NcclType::f32 : type == ElementType::f16 ? NcclType::f16 : NcclType::bf16;
    }
    const void* address(Place place, const MatrixOperand& given, std::int64_t row) const
    {
        return rows_of(matrix_at(plan_, place, given), row, 0).data;
    }

    void send_receive(const Step& step, const void* from, void* to, StreamRef stream) const
    {
        const std::size_t sent = bytes_of(step, step.rows);
        const std::size_t received = bytes_of(step, step.rows_received);
        if (sent + received == 0) {
            return;
        }
        const detail::Nccl& nccl = state_.nccl();
        ncclComm* const comm = comm_of(step);
        const auto calls = [&] {
            NcclResult result = NcclResult::success;
            if (sent > 0) {
                result = nccl.send(from, sent, NcclType::uint8, step.to, comm, stream.get());
            }
            if (received > 0 && (result == NcclResult::success || result == NcclResult::in_progress)) {
                result = nccl.receive(to, received, NcclType::uint8, step.from, comm, stream.get());
            }
            return result;
        };
        state_.group(calls, operation_, caller_);
    }

    const ShardedPlan& plan_;
    detail::CommunicatorState& state_;
    const Operands& operands_;
    std::string_view operation_;
    const std::source_location& caller_;
};

/// Moves what will be moved once: the first time, NCCL connects and allocates, which a capture would not allow.
void connect(const ShardedPlan& plan, const std::source_location& caller)
{
    constexpr std::string_view operation = "ShardedGemm::prepare";
    detail::CommunicatorState& state = *plan.state;
    const tessera::detail::CurrentDevice current(state.device().ordinal(), operation, caller);
    const Mover mover(plan, plan.given, operation, caller);
    state.begin_operation(operation, caller);
    for (const Step& step : plan.schedule.steps) {
        if (step.kind != Step::Kind::product && step.kind != Step::Kind::copy && step.d != Place::given) {
            mover.enqueue(step, state.stream());
        }
    }
    state.synchronize(state.stream(), operation, caller);
}

// What the plan's memory is written by, and when:
// - by this rank (a copy of A, partial sums), on `stream`, which has waited for all communication of the launch before;
// - by other ranks. NCCL's collectives of copy engines begin with a meeting of all ranks, and a receive is this rank's own. Both come
//   after an event of this launch on `stream`, so that the products of the launch before have read what is overwritten.
void launch(const ShardedPlan& plan, StreamRef stream, const Operands& operands, const std::source_location& caller)
{
    constexpr std::string_view operation = "ShardedGemm::launch";
    detail::CommunicatorState& state = *plan.state;
    tessera::detail::require_same_device(operation, caller, "the communicator", state.device().ordinal(), "the stream",
                                         stream.device());
    state.begin_operation(operation, caller);
    const tessera::detail::CurrentDevice current(state.device().ordinal(), operation, caller);
    const Mover mover(plan, operands, operation, caller);
    // Inside of a capture, the stream belongs to it once it waits for the captured one.
    const StreamRef beside = state.stream();
    const auto& steps = plan.schedule.steps;
    if (plan.schedule.overlaps) {
        const Event& begin = plan.events[plan.events.size() - 2];
        begin.record(stream, caller);
        beside.wait(begin, caller);
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Step& step = steps[i];
        const StreamRef on = step.beside ? beside : stream;
        if (step.waits_for >= 0) {
            on.wait(plan.events[plan.event_of_step[static_cast<std::size_t>(step.waits_for)]], caller);
        }
        if (step.kind == Step::Kind::product) {
            const Product product = product_of(plan, operands, step);
            plan.products[plan.product_of_step[i]].plan.launch(on, product.a, product.b, product.d, product.epilogue,
                                                               caller);
        } else {
            mover.enqueue(step, on);
        }
        if (step.is_awaited) {
            plan.events[plan.event_of_step[i]].record(on, caller);
        }
    }
    if (plan.schedule.overlaps) {
        plan.events.back().record(beside, caller);
        stream.wait(plan.events.back(), caller);
    }
}

}  // namespace

ShardedGemm::ShardedGemm(std::unique_ptr<detail::ShardedPlan> plan) noexcept : plan_(std::move(plan)) {}
ShardedGemm::ShardedGemm(ShardedGemm&& other) noexcept = default;
ShardedGemm& ShardedGemm::operator=(ShardedGemm&& other) noexcept = default;
ShardedGemm::~ShardedGemm() = default;

ShardedGemm ShardedGemm::prepare(const Communicator& communicator, const ShardedMatrix& a, const ShardedMatrix& b,
                                 const ShardedMatrix& d, const Epilogue& epilogue, const ShardedGemmOptions& options,
                                 std::source_location caller)
{
    constexpr std::string_view operation = "ShardedGemm::prepare";
    auto plan = std::make_unique<ShardedPlan>(communicator.state(), Operands{a, b, d, epilogue});
    detail::CommunicatorState& state = *plan->state;
    detail::Agreement agreement;
    const auto refuse = [&] {
        agreement.values[detail::Agreement::is_refused] = 1;
        detail::require_agreement(state, agreement, operation, caller);
    };
    try {
        if (options.chunks < 0) {
            raise(ErrorCode::invalid_argument, operation, caller, fmt::format("{} chunks", options.chunks),
                  "1 or more, or 0 for the library's choice");
        }
        const detail::ShardedShape shape = detail::shape_of(state, a, b, d, epilogue, operation, caller);
        plan->rates = rates_of(state, options, a.local.type);
        // All ranks decide as rank 0 would, whose parts are the largest.
        detail::ShardedShape of_rank_0 = shape;
        of_rank_0.gather.rank = 0;
        of_rank_0.sum.rank = 0;
        of_rank_0.n = b.columns_of(0).size;
        of_rank_0.k = a.columns_of(0).size;
        const detail::Schedule chosen = detail::choose_schedule(of_rank_0, plan->rates, options.chunks);
        plan->schedule = detail::Schedule::of(shape, chosen.chunks, chosen.overlaps);
        agreement = detail::agreement_of(plan->schedule, a, b, d, epilogue);
    } catch (const RankError&) {
        throw;
    } catch (const Error&) {
        refuse();
        throw;
    }
    detail::require_agreement(state, agreement, operation, caller);
    const detail::ShardedShape& shape = plan->schedule.shape;
    state.connect(shape.gather, operation, caller);
    state.connect(shape.sum, operation, caller);
    const auto allocate = [&](std::int64_t rows, std::int64_t columns, std::size_t element) {
        const std::size_t bytes = static_cast<std::size_t>(rows * columns) * element;
        // What kernels move is better not registered: NCCL would take copy engines for the smallest message.
        return bytes == 0 ? nullptr : state.allocate(bytes, plan->schedule.uses_copies, operation, caller);
    };
    plan->gathered = allocate(plan->schedule.rows_gathered, shape.k, shape.a_bytes);
    plan->summed = allocate(plan->schedule.rows_summed, shape.n, shape.d_bytes);
    plan_products(*plan, caller);
    make_events(*plan, caller);
    connect(*plan, caller);
    return ShardedGemm(std::move(plan));
}

void ShardedGemm::launch(StreamRef stream, std::source_location caller) const
{
    distributed::launch(*plan_, stream, plan_->given, caller);
}

void ShardedGemm::launch(StreamRef stream, const ShardedMatrix& a, const ShardedMatrix& b, const ShardedMatrix& d,
                         const Epilogue& epilogue, std::source_location caller) const
{
    constexpr std::string_view operation = "ShardedGemm::launch";
    detail::require_same_form('A', plan_->given.a, a, operation, caller);
    detail::require_same_form('B', plan_->given.b, b, operation, caller);
    detail::require_same_form('D', plan_->given.d, d, operation, caller);
    distributed::launch(*plan_, stream, {a, b, d, epilogue}, caller);
}

int ShardedGemm::chunks() const noexcept { return plan_->schedule.chunks; }

std::string ShardedGemm::explain() const
{
    const detail::Schedule& schedule = plan_->schedule;
    const detail::ShardedShape& shape = schedule.shape;
    const detail::ModelRates& rates = plan_->rates;
    const detail::LinkRates& link = schedule.uses_copies ? rates.copies : rates.kernels;
    const auto bytes_of = [](const detail::RegisteredRange* range) { return range == nullptr ? 0 : range->bytes; };
    std::string text = fmt::format("{}: A {}, B {}, D {}\n  {}\n", to_string(shape.kind), plan_->given.a.describe(),
                                   plan_->given.b.describe(), plan_->given.d.describe(), plan_->state->describe());
    text += schedule.overlaps
                ? fmt::format(
                      "  {} chunk{} of each rank's rows, beside the product on a stream of the most urgent "
                      "priority, moved by {}\n",
                      schedule.chunks, schedule.chunks == 1 ? "" : "s",
                      schedule.uses_copies
                          ? std::string("copy engines")
                          : fmt::format("kernels, to which the product leaves {} SMs", rates.sms_of_communication))
                : std::string("  one after the other, on one stream\n");
    text += fmt::format("  memory of the plan: {} bytes\n", bytes_of(plan_->gathered) + bytes_of(plan_->summed));
    text += fmt::format(
        "  the model counts with {:.0f} TFLOP/s and {:.0f} GB/s, and expects {:.1f} us; one after the "
        "other {:.1f} us\n",
        rates.flops * 1e-12, link.bytes * 1e-9, detail::seconds_of(schedule, rates) * 1e6,
        detail::seconds_of(detail::Schedule::of(shape, 1, false), rates) * 1e6);
    text += detail::describe(schedule, rates);
    for (const detail::PlannedProduct& product : plan_->products) {
        text += product.plan.explain();
    }
    return text;
}

}  // namespace tessera::distributed
