#include "tuning/tuning_table.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>

#include "gemm/backend.hpp"
#include "gemm/variant_chooser.hpp"
#include "tuning/tuning_cache.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t buckets = 1024;
constexpr std::int64_t clock_difference = 3600;  // seconds by which the clocks of two machines may differ

/// Only `next` of a forgotten node ever changes, and no node is freed, so readers need no lock.
struct Node {
    TuningKey key;
    TunedChoice tuned;
    const Node* next;
};

struct Table {
    std::array<std::atomic<const Node*>, buckets> heads{};
    std::atomic<std::size_t> count{0};
    std::atomic<std::uint64_t> generation{0};
    std::mutex mutex;  // for writers

    // Never destroyed: static owners may launch while the process exits.
    static Table& get()
    {
        static auto* const instance = new Table;
        return *instance;
    }
};

/// Mixes one word into a hash with the finalizer of MurmurHash3.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t word)
{
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDU;
    return hash ^ hash >> 33U;
}

std::size_t bucket_of(const TuningKey& key)
{
    std::uint64_t hash = key.device;
    for (const std::int64_t extent : {key.m, key.n, key.k, key.batches}) {
        hash = mix(hash, static_cast<std::uint64_t>(extent));
    }
    for (const std::uint8_t fact : key.facts) {
        hash = mix(hash, fact);
    }
    return hash % buckets;
}

const Node* find(const Table& table, const TuningKey& key) noexcept
{
    const Node* node = table.heads[bucket_of(key)].load(std::memory_order_acquire);
    while (node != nullptr && !(node->key == key)) {
        node = node->next;
    }
    return node;
}

std::uint8_t alignment_of(const MatrixLayout& layout, std::int64_t vectors, std::size_t element_bytes,
                          std::int64_t batches)
{
    constexpr std::int64_t widest = 16;
    const auto bytes = static_cast<std::int64_t>(element_bytes);
    auto alignment = std::min(static_cast<std::int64_t>(layout.address_alignment), widest);
    while (alignment > 1 && ((vectors > 1 && layout.leading_dimension * bytes % alignment != 0) ||
                             (batches > 1 && layout.batch_stride * bytes % alignment != 0))) {
        alignment /= 2;
    }
    return static_cast<std::uint8_t>(alignment);
}

}  // namespace

std::uint64_t tuning_device(const DeviceProperties& device) noexcept
{
    std::uint64_t hash = 0;
    for (const char character : device.name) {
        hash = mix(hash, static_cast<unsigned char>(character));
    }
    return mix(mix(hash, static_cast<std::uint64_t>(device.compute_capability())),
               static_cast<std::uint64_t>(device.sm_count));
}

TuningKey tuning_key(const GemmProblem& problem, const DeviceProperties& device) noexcept
{
    TuningKey key{tuning_device(device), problem.m, problem.n, problem.k, problem.batches, {}};
    const auto set = [&](TuningFact fact, auto value) { key.facts[fact] = static_cast<std::uint8_t>(value); };
    set(type_a, problem.input.a);
    set(type_b, problem.input.b);
    set(type_d, problem.output);
    set(order_a, problem.a.row_major);
    set(order_b, problem.b.row_major);
    set(order_d, problem.d.row_major);
    set(align_a,
        alignment_of(problem.a, problem.a.row_major ? problem.m : problem.k, size_of(problem.input), problem.batches));
    set(align_b,
        alignment_of(problem.b, problem.b.row_major ? problem.k : problem.n, size_of(problem.input), problem.batches));
    set(align_d, alignment_of(problem.d, problem.d.row_major ? problem.m : problem.d_columns(), size_of(problem.output),
                              problem.batches));
    set(shared_a, problem.batches > 1 && problem.a.batch_stride == 0);
    set(shared_b, problem.batches > 1 && problem.b.batch_stride == 0);
    set(has_c, problem.has_c);
    set(bias, problem.bias);
    set(activation, problem.activation);
    set(pre_activation, problem.has_pre_activation);
    set(fp8_fast, is_float8(problem.input) && problem.fp8_accumulation == Fp8Accumulation::fast);
    set(gating, problem.gating);
    set(f16_sums, allows_f16_sums(problem));
    set(scale_vectors, (problem.row_scales ? 1 : 0) + (problem.column_scales ? 2 : 0));
    return key;
}

std::optional<TunedChoice> find_tuned(const TuningKey& key) noexcept
{
    const Node* node = find(Table::get(), key);
    return node == nullptr ? std::nullopt : std::optional(node->tuned);
}

namespace {

void put(Table& table, const Node* known, const TuningKey& key, const TunedChoice& tuned)
{
    // Inserted before the older node, which readers may still use.
    std::atomic<const Node*>& head = table.heads[bucket_of(key)];
    head.store(new Node{key, tuned, head.load(std::memory_order_relaxed)}, std::memory_order_release);
    if (known == nullptr) {
        table.count.fetch_add(1, std::memory_order_relaxed);
    }
    table.generation.fetch_add(1, std::memory_order_release);
}

}  // namespace

std::int64_t tuning_clock() noexcept
{
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::int64_t believed_time(std::int64_t when, std::int64_t now) noexcept
{
    return when - clock_difference <= now ? when : -1;
}

void store_tuned(const TuningKey& key, const TunedChoice& tuned)
{
    Table& table = Table::get();
    const std::int64_t now = tuning_clock();
    const std::scoped_lock lock(table.mutex);
    const Node* known = find(table, key);
    if (known != nullptr &&
        (believed_time(known->tuned.when, now) > believed_time(tuned.when, now) || known->tuned == tuned)) {
        return;
    }
    put(table, known, key, tuned);
}

void store_measured(const TuningKey& key, TunedChoice tuned)
{
    Table& table = Table::get();
    tuned.when = tuning_clock();
    const std::scoped_lock lock(table.mutex);
    const Node* known = find(table, key);
    if (known != nullptr) {
        tuned.when = std::max(tuned.when, believed_time(known->tuned.when, tuned.when) + 1);
    }
    put(table, known, key, tuned);
}

void for_each_tuned(const std::function<void(const TuningKey&, const TunedChoice&)>& visit)
{
    const Table& table = Table::get();
    for (const auto& head : table.heads) {
        for (const Node* node = head.load(std::memory_order_acquire); node != nullptr; node = node->next) {
            if (find(table, node->key) == node) {
                visit(node->key, node->tuned);
            }
        }
    }
}

std::size_t tuned_count() noexcept { return Table::get().count.load(std::memory_order_relaxed); }

void clear_tuned() noexcept
{
    Table& table = Table::get();
    const std::scoped_lock lock(table.mutex);
    // The nodes are not freed: a reader may be at one of them, and there are few.
    for (auto& head : table.heads) {
        head.store(nullptr, std::memory_order_release);
    }
    table.count.store(0, std::memory_order_relaxed);
    table.generation.fetch_add(1, std::memory_order_release);
}

std::uint64_t tuning_generation() noexcept { return Table::get().generation.load(std::memory_order_acquire); }

std::optional<TunedChoice> find_valid_tuned(const GemmProblem& problem, const DeviceProperties& device)
{
    load_environment_cache_once();
    if (tuned_count() == 0) {
        return std::nullopt;
    }
    const std::optional<TunedChoice> tuned = find_tuned(tuning_key(problem, device));
    if (!tuned || find_refusal(tuned->choice.variant, problem, device) ||
        !backend_of(tuned->choice.variant).is_valid({problem, device}, tuned->choice)) {
        return std::nullopt;
    }
    return tuned;
}

}  // namespace tessera::detail
