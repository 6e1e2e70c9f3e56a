/// Allocate, throw, drop: random sequences of allocations, moves, fills, copies, products and exceptions. Afterwards
/// all memory must be freed and no destructor may have failed. Needs a device.

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/gemm_runner.hpp"
#include "support/test_main.hpp"
#include "tessera/tessera.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

struct Interrupted {};

/// The owners of one sequence, and random operations on them.
class Sequence {
public:
    explicit Sequence(std::mt19937_64& engine) : engine_(engine) {}

    void step()
    {
        switch (engine_() % 12) {
            case 0: allocate(Allocation::pool); break;
            case 1: allocate(Allocation::plain); break;
            case 2: pinned_.emplace_back(size()); break;
            case 3: move_one(); break;
            case 4: drop_one(); break;
            case 5: fill_one(); break;
            case 6: copy_up(); break;
            case 7: copy_down(); break;
            case 8: copy_across(); break;
            case 9: multiply(); break;
            case 10: fail(); break;
            case 11: replay(); break;
        }
    }

private:
    std::size_t size() { return 1 + engine_() % (engine_() % 16 == 0 ? 1U << 20U : 1U << 12U); }
    Stream& any_stream() { return streams_[engine_() % std::size(streams_)]; }
    DeviceBuffer<float>* any_buffer() { return buffers_.empty() ? nullptr : &buffers_[engine_() % buffers_.size()]; }

    void allocate(Allocation allocation)
    {
        DeviceBuffer<float> buffer(any_stream(), size(), allocation);
        buffer.fill(buffer.stream(), 1.0F);
        buffers_.push_back(std::move(buffer));
    }

    void move_one()
    {
        if (auto* buffer = any_buffer()) {
            DeviceBuffer<float> taken = std::move(*buffer);
            *buffer = engine_() % 2 == 0 ? std::move(taken) : DeviceBuffer<float>(any_stream(), 0);
        }
    }

    void drop_one()
    {
        if (!buffers_.empty()) {
            buffers_.erase(buffers_.begin() + static_cast<std::ptrdiff_t>(engine_() % buffers_.size()));
        }
        if (!pinned_.empty() && engine_() % 2 == 0) {
            pinned_.erase(pinned_.begin() + static_cast<std::ptrdiff_t>(engine_() % pinned_.size()));
        }
        if (engine_() % 8 == 0) {
            any_stream() = Stream();  // the old one stays alive while buffers use it
        }
    }

    void fill_one()
    {
        if (auto* buffer = any_buffer()) {
            buffer->fill(buffer->stream(), 2.5F);
        }
    }

    void copy_up()
    {
        auto* buffer = any_buffer();
        if (buffer != nullptr && !pinned_.empty()) {
            auto& source = pinned_[engine_() % pinned_.size()];
            if (source.size() <= buffer->size()) {
                buffer->copy_from_async(buffer->stream(), source);
            }
        }
    }

    void copy_down()
    {
        auto* buffer = any_buffer();
        if (buffer != nullptr && !pinned_.empty()) {
            auto& target = pinned_[engine_() % pinned_.size()];
            if (target.size() <= buffer->size()) {
                buffer->copy_to_async(buffer->stream(), target);
                target.synchronize();  // several copies to one target would race
            }
        }
    }

    /// Copies from another stream's buffer, ordered in both directions.
    void copy_across()
    {
        auto* source = any_buffer();
        auto* target = any_buffer();
        if (source != nullptr && source != target && source->size() <= target->size() && !source->empty()) {
            const StreamRef stream = target->stream();
            stream.wait(source->stream());
            target->copy_from_async(stream, std::as_const(*source).span());
            source->used_on(stream);
        }
    }

    void multiply()
    {
        const Stream& stream = any_stream();
        const auto extent = static_cast<std::int64_t>(1 + engine_() % (quick() ? 40 : 100));
        const auto elements = static_cast<std::size_t>(extent * extent);
        DeviceBuffer<float> a(stream, elements);
        DeviceBuffer<float> d(stream, elements);
        a.fill(stream, 1.0F);
        const auto variants = simt_variants();  // tensor cores do not multiply f32
        Variant variant = variants[engine_() % variants.size()];
        const auto view = a.matrix(extent, extent);
        if (extent % 4 != 0) {
            variant = Variant::automatic;
        }
        Gemm::launch(stream, view, view, d.matrix(extent, extent), {}, variant);
        buffers_.push_back(std::move(d));
    }

    /// Makes calls that throw half-way. The caller catches; everything that they created must be freed.
    void fail()
    {
        const Stream& stream = any_stream();
        DeviceBuffer<float> local(stream, size());
        switch (engine_() % 4) {
            case 0: throw Interrupted{};
            case 1: local.copy_from(std::vector<float>(local.size() + 1)); break;
            case 2: Gemm::launch(stream, local.matrix(1, 1), local.matrix(1, 1), local.matrix(1, 1)); break;
            case 3:
                Graph::capture(stream, [&](StreamRef s) {
                    local.fill(s, 1.0F);
                    throw Interrupted{};
                });
        }
    }

    void replay()
    {
        const Stream& stream = any_stream();
        DeviceBuffer<float> local(stream, size());
        const Graph graph = Graph::capture(stream, [&](StreamRef s) { local.fill(s, 3.0F); });
        graph.launch(stream);
        stream.synchronize();  // the graph's memory must outlive its replays
    }

    std::mt19937_64& engine_;
    Stream streams_[3];
    std::vector<PinnedBuffer<float>> pinned_;
    std::vector<DeviceBuffer<float>> buffers_;
};

/// Runs one sequence, which may end early by an exception.
void run_sequence(std::mt19937_64& engine)
{
    try {
        Sequence sequence(engine);
        for (std::uint64_t steps = engine() % 60; steps != 0; --steps) {
            try {
                sequence.step();
            } catch (const Error& error) {
                const bool expected = error.code() == ErrorCode::out_of_range || error.code() == ErrorCode::aliasing;
                CHECK_MESSAGE(expected, std::string(error.what()));
            } catch (const Interrupted&) {
                if (engine() % 2 == 0) {
                    throw;
                }
            }
        }
    } catch (const Interrupted&) {  // the sequence was dropped with everything it owned, with work pending
    }
}

cudaMemPool_t pool()
{
    cudaMemPool_t current = nullptr;
    REQUIRE(cudaDeviceGetMemPool(&current, Device::current().ordinal()) == cudaSuccess);
    return current;
}

std::uint64_t used_by_pool()
{
    std::uint64_t used = 0;
    REQUIRE(cudaMemPoolGetAttribute(pool(), cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess);
    return used;
}

/// Returns the free memory after all work is done and the pool has released what it kept.
std::size_t settled_free_memory()
{
    const Device device = Device::current();
    device.synchronize();
    if (device.properties().has_memory_pools) {
        REQUIRE(cudaMemPoolTrimTo(pool(), 0) == cudaSuccess);
    }
    return device.free_memory_bytes();
}

}  // namespace

TEST_CASE("after random sequences with exceptions, all memory is freed and no destructor has failed")
{
    std::mt19937_64 engine = random_engine(1);
    for (int i = 0; i < 30; ++i) {
        run_sequence(engine);  // loads all kernels, which uses memory once
    }
    const std::size_t before = settled_free_memory();
    const int sequences = quick() ? 50 : 2000;
    for (int i = 0; i < sequences; ++i) {
        run_sequence(engine);
    }
    const std::size_t after = settled_free_memory();
    if (Device::current().properties().has_memory_pools) {
        CHECK(used_by_pool() == 0);
    }
    // cudaMalloc gets memory from the driver in pieces of 2 MiB, and may keep a partly used one.
    CHECK(after + (std::size_t{2} << 20U) >= before);
    const std::vector<std::string> dropped = dropped_errors();
    CHECK_MESSAGE(dropped.empty(), (dropped.empty() ? "" : dropped.front()));
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
