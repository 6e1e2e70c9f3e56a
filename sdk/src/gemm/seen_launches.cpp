#include "gemm/seen_launches.hpp"

#include <bit>
#include <optional>
#include <tuple>

namespace tessera::detail {
namespace {

// Each function names all members of its type: a new member does not compile until it is compared, too.

auto values_of(const MatrixOperand& operand) noexcept
{
    const auto& [data, type, rows, columns, leading_dimension, batches, batch_stride, outer_batches, outer_stride,
                 row_major, present, writable, device] = operand;
    return std::make_tuple(data, type, rows, columns, leading_dimension, batches, batch_stride, outer_batches,
                           outer_stride, row_major, present, writable, device);
}

auto values_of(const Bias& bias) noexcept
{
    const auto& [data, type, size, axis, device] = bias;
    return std::make_tuple(data, type, size, axis, device);
}

auto values_of(DeviceSpan<const float> span) noexcept
{
    return std::make_tuple(span.data(), span.size(), span.device());
}

// As bits: -0 is not 0, and NaN is NaN.
std::uint32_t values_of(float value) noexcept { return std::bit_cast<std::uint32_t>(value); }
std::optional<std::uint32_t> values_of(const std::optional<float>& value) noexcept
{
    return value ? std::optional(std::bit_cast<std::uint32_t>(*value)) : std::nullopt;
}

template <class T>
bool same(const T& one, const T& other) noexcept
{
    return values_of(one) == values_of(other);
}

bool same(const Epilogue& one, const Epilogue& other) noexcept
{
    const auto& [alpha, beta, c, bias, activation, pre_activation, scale_a, scale_b, scale_d, amax_d, fp8_accumulation,
                 f16_accumulation, gating] = one;
    return same(alpha, other.alpha) && same(beta, other.beta) && same(c, other.c) && same(bias, other.bias) &&
           activation == other.activation && same(pre_activation, other.pre_activation) &&
           same(scale_a, other.scale_a) && same(scale_b, other.scale_b) && same(scale_d, other.scale_d) &&
           same<DeviceSpan<const float>>(amax_d, other.amax_d) && fp8_accumulation == other.fp8_accumulation &&
           f16_accumulation == other.f16_accumulation && gating == other.gating;
}

}  // namespace

bool same_operands(const GemmOperands& one, const Epilogue& one_epilogue, const GemmOperands& other,
                   const Epilogue& other_epilogue) noexcept
{
    return same(one.a, other.a) && same(one.b, other.b) && same(one.d, other.d) && same(one_epilogue, other_epilogue);
}

std::uint64_t hash_of(const GemmOperands& operands, const Epilogue& epilogue) noexcept
{
    constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15U;  // 2^64 divided by it
    std::uint64_t hash = 0;
    for (const void* data : {operands.a.data, operands.b.data, operands.d.data, epilogue.c.data, epilogue.bias.data}) {
        hash = (hash ^ std::bit_cast<std::uintptr_t>(data)) * golden_ratio;
        hash ^= hash >> 32U;
    }
    for (const std::int64_t extent : {operands.d.rows, operands.d.columns, operands.a.columns}) {
        hash = (hash ^ static_cast<std::uint64_t>(extent)) * golden_ratio;
    }
    return (hash ^ hash >> 32U) | 1U;
}

SeenLaunches::Hit::~Hit()
{
    if (entry_ != nullptr) {
        entry_->users.fetch_sub(1, std::memory_order_release);
    }
}

SeenLaunches::Hit SeenLaunches::find(std::uint64_t hash, const GemmOperands& operands, const Epilogue& epilogue,
                                     const ChoiceContext& context, const WorkspaceMemory* memory) noexcept
{
    for (std::size_t i = 0; i < capacity; ++i) {
        if (hashes_[i].load(std::memory_order_relaxed) != hash) {
            continue;
        }
        Entry& entry = entries_[i];
        const std::uint32_t before = entry.users.fetch_add(1, std::memory_order_acquire);
        Hit hit(&entry);  // released if it is not returned
        if ((before & writer) == 0 && entry.context == context &&
            same_operands(entry.operands, entry.epilogue, operands, epilogue) &&
            (memory == nullptr || same_memory(entry.memory, *memory))) {
            return hit;
        }
    }
    return {};
}

bool SeenLaunches::has_missed_before(std::uint64_t hash) noexcept
{
    for (const std::atomic<std::uint64_t>& missed : missed_) {
        if (missed.load(std::memory_order_relaxed) == hash) {
            return true;
        }
    }
    missed_[next_missed_.fetch_add(1, std::memory_order_relaxed) % capacity].store(hash, std::memory_order_relaxed);
    return false;
}

void SeenLaunches::keep(std::uint64_t hash, const GemmOperands& operands, const Epilogue& epilogue,
                        const ChoiceContext& context, const GemmProblem& problem, const KernelChoice& choice,
                        WorkspaceNeed need, const WorkspaceMemory& memory, const EncodedLaunch& launch) noexcept
{
    for (std::size_t i = 0; i < capacity; ++i) {
        const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed) % capacity;
        Entry& entry = entries_[index];
        std::uint32_t nobody = 0;
        if (!entry.users.compare_exchange_strong(nobody, writer, std::memory_order_acquire)) {
            continue;  // in use
        }
        entry.context = context;
        entry.operands = operands;
        entry.epilogue = epilogue;
        entry.problem = problem;
        entry.choice = choice;
        entry.need = need;
        entry.memory = memory;
        entry.launch = launch;
        hashes_[index].store(hash, std::memory_order_relaxed);
        entry.users.fetch_and(~writer, std::memory_order_release);
        return;
    }
}

SeenLaunches& seen_without_plan(std::uint64_t hash)
{
    constexpr std::size_t sets = 32;
    // Never destroyed: static owners may launch while the process exits.
    static auto* const all = new std::array<SeenLaunches, sets>;
    return (*all)[hash >> 59U];
}

SeenLaunchesRef::SeenLaunchesRef() : seen_(new SeenLaunches) {}

SeenLaunchesRef::SeenLaunchesRef(const SeenLaunchesRef& other) noexcept : seen_(other.seen_)
{
    seen_->owners_.fetch_add(1, std::memory_order_relaxed);
}

SeenLaunchesRef& SeenLaunchesRef::operator=(const SeenLaunchesRef& other) noexcept
{
    SeenLaunchesRef copy(other);
    std::swap(seen_, copy.seen_);
    return *this;
}

SeenLaunchesRef::~SeenLaunchesRef()
{
    if (seen_->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete seen_;
    }
}

}  // namespace tessera::detail
