// What ends a communicator: every rank gets an error that names the one that failed, in time, and nothing is left behind.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "ranks.hpp"
#include "support/errors.hpp"
#include "support/test_main.hpp"
#include "tessera_distributed.h"

using namespace tessera;
using namespace tessera::distributed;
using namespace tessera::test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto timeout = 1500ms;
// Copy engines that wait for a rank cannot be called back: for them, processes.sh ends whole processes.
constexpr CommunicatorOptions impatient{.timeout = timeout, .copy_engines = false};

/// A product of 2 ranks, and what it needs.
class SmallProduct {
public:
    explicit SmallProduct(const Communicator& communicator, int chunks = 2)
        : stream_(communicator.device()),
          a_(stream_, 32 * 16),
          b_(stream_, 16 * 8),
          d_(stream_, 64 * 8),
          product_(ShardedGemm::prepare(communicator, ShardedMatrix::by_rows(communicator, 64, 16, a_.matrix(32, 16)),
                                        ShardedMatrix::by_columns(communicator, 16, 16, b_.matrix(16, 8)),
                                        ShardedMatrix::by_columns(communicator, 64, 16, d_.matrix(64, 8)), {},
                                        {.chunks = chunks}))
    {
        a_.fill(stream_, bf16(1.0F));
        b_.fill(stream_, bf16(1.0F));
    }
    const Stream& stream() const { return stream_; }
    void launch() const { product_.launch(stream_); }

private:
    Stream stream_;
    DeviceBuffer<bf16> a_;
    DeviceBuffer<bf16> b_;
    DeviceBuffer<bf16> d_;
    ShardedGemm product_;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Runs two ranks, and checks that all of it takes no longer than waits may, and that NCCL has nothing left.
RankErrors run_two(const std::function<void(const Communicator&)>& work, const CommunicatorOptions& options = impatient)
{
    const auto start = Clock::now();
    const RankErrors errors = run_ranks(communicators_of(2, options), work);
    CHECK(Clock::now() - start < 10 * timeout);
    const FakeNcclStatistics left = FakeNccl::statistics();
    CHECK(left.communicators == 0);
    CHECK(left.allocations == 0);
    return errors;
}

}  // namespace

TEST_CASE("a rank that throws ends the wait of the others, which name it")
{
    const auto start = Clock::now();
    const RankErrors errors = run_two(
        [](const Communicator& communicator) {
            const SmallProduct product(communicator);
            if (communicator.rank() == 1) {
                throw std::runtime_error("out of coffee");
            }
            product.launch();
            communicator.synchronize(product.stream());
        },
        {.timeout = 20s, .copy_engines = false});
    CHECK(Clock::now() - start < 10s);  // much less than the timeout
    CHECK(errors.texts[1] == "out of coffee");
    CHECK(errors.culprits[0] == 1);
    CHECK(contains(errors.texts[0], "rank 1 of 2"));
}

TEST_CASE("a rank that does not come is named when time is up")
{
    const RankErrors errors = run_two([](const Communicator& communicator) {
        const SmallProduct product(communicator);
        if (communicator.rank() == 1) {
            std::this_thread::sleep_for(2 * timeout);
            return;
        }
        product.launch();
        communicator.synchronize(product.stream());
    });
    CHECK(errors.culprits[0] == 1);
    CHECK(contains(errors.texts[0], "did not end within 1.5 s on rank 0 of 2"));
    CHECK(contains(errors.texts[0], "rank 1 began only"));
    CHECK(errors.texts[1] == "");
}

TEST_CASE("a rank that leaves too early is named before time is up")
{
    const RankErrors errors = run_two(
        [](const Communicator& communicator) {
            const SmallProduct product(communicator);
            if (communicator.rank() == 0) {
                return;
            }
            product.launch();
            communicator.synchronize(product.stream());
        },
        {.timeout = 20s, .copy_engines = false});
    CHECK(errors.culprits[1] == 0);
    CHECK(contains(errors.texts[1], "rank 0 of 2 left after"));
}

TEST_CASE("an error of NCCL's is reported by all ranks, with the rank on which it happened")
{
    const RankErrors errors = run_two([](const Communicator& communicator) {
        const SmallProduct product(communicator);
        product.launch();
        communicator.synchronize(product.stream());
        if (communicator.rank() == 1) {
            FakeNccl::fail(1, 1, 2);  // ncclSystemError
        } else {
            std::this_thread::sleep_for(100ms);
        }
        product.launch();
        communicator.synchronize(product.stream());
    });
    CHECK(errors.culprits[0] == 1);
    CHECK(errors.culprits[1] == 1);
    CHECK(contains(errors.texts[0], "returned unhandled system error (2)"));
    CHECK(contains(errors.texts[1], "returned unhandled system error (2)"));
}

TEST_CASE("an error while joining is the error of all")
{
    FakeNccl::fail(1, 1, 3);
    const auto error = error_of([] { static_cast<void>(communicators_of(2, impatient)); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::communication_failed);
    CHECK(contains(error->what(), "ncclCommInitRankConfig returned internal error (3)"));
    FakeNccl::fail(1, 1, 3);
    const std::array<std::int32_t, 2> devices{0, 1};
    std::array<tessera_communicator*, 2> made{};
    CHECK(tessera_communicator_of_devices(devices.data(), 2, nullptr, made.data()) == TESSERA_COMMUNICATION_FAILED);
    CHECK(contains(tessera_last_error(), "tessera: communication_failed in tessera_communicator_of_devices"));
    CHECK(contains(error->what(), "rank 1 of 2"));
    CHECK(FakeNccl::statistics().communicators == 0);
}

TEST_CASE("abort ends all ranks, and every later call says so again")
{
    const RankErrors errors = run_two([](const Communicator& communicator) {
        const SmallProduct product(communicator);
        if (communicator.rank() == 0) {
            communicator.abort("the loss is NaN");
        } else {
            std::this_thread::sleep_for(50ms);
        }
        CHECK(error_of([&] { product.launch(); }));
        communicator.synchronize(product.stream());
    });
    for (const std::string& text : errors.texts) {
        CHECK(contains(text, "rank 0 of 2 failed"));
        CHECK(contains(text, "the loss is NaN"));
    }
}

TEST_CASE("matrices that do not fit between ranks: all ranks are told which differs, and the communicator stays intact")
{
    const RankErrors errors = run_two([](const Communicator& communicator) {
        const Stream stream(communicator.device());
        DeviceBuffer<bf16> memory(stream, 4096);
        memory.fill(stream, bf16(1.0F));
        DeviceBuffer<bf16> d(stream, 4096);
        const auto prepare = [&](std::int64_t m, int chunks) {
            const std::int64_t share = Share::of(m, 2, communicator.rank()).size;
            return ShardedGemm::prepare(
                communicator, ShardedMatrix::by_rows(communicator, m, 16, memory.matrix(share, 16)),
                ShardedMatrix::by_columns(communicator, 16, 16, memory.matrix(16, 8)),
                ShardedMatrix::by_columns(communicator, m, 16, d.matrix(m, 8)), {}, {.chunks = chunks});
        };
        const auto error = error_of([&] { prepare(communicator.rank() == 0 ? 64 : 32, 1); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::shape_mismatch);
        CHECK(error->message() == "M: rank 1 has 32, but rank 0 has 64");
        const auto chunks = error_of([&] { prepare(64, 1 + communicator.rank()); });
        REQUIRE(chunks);
        CHECK(chunks->message() == "the chunks: rank 1 has 2, but rank 0 has 1");
        const auto refused = error_of([&] { prepare(64, -communicator.rank()); });
        REQUIRE(refused);
        CHECK(refused->message() == (communicator.rank() == 1 ? "-1 chunks" : "rank 1 refused its matrices"));
        prepare(64, 2).launch(stream);
        communicator.synchronize(stream);
    });
    CHECK(errors.texts[0] == "");
    CHECK(errors.texts[1] == "");
}

TEST_CASE("a refusal names the rank and the values")
{
    const RankErrors errors = run_ranks(communicators_of(1), [](const Communicator& communicator) {
        const Stream stream(communicator.device());
        DeviceBuffer<bf16> memory(stream, 4096);
        const auto whole = [&](std::int64_t rows, std::int64_t columns, const MatrixOperand& local) {
            return ShardedMatrix::replicated(communicator, rows, columns, local);
        };
        CHECK_ERROR(
            "tessera: shape_mismatch in ShardedMatrix::by_rows\n"
            "  rank 0 of 1 has a matrix of 8x4, but its part of 9x4 by_rows is 9x4\n"
            "  try: Share::of tells the part of each rank",
            ShardedMatrix::by_rows(communicator, 9, 4, memory.matrix(8, 4)));
        CHECK_ERROR(
            "tessera: invalid_argument in ShardedMatrix::by_blocks\n"
            "  a grid of 2 x 1 has 2 places, but there are 1 ranks\n"
            "  try: a grid with as many places as ranks",
            ShardedMatrix::by_blocks(communicator, 8, 4, 2, 1, memory.matrix(8, 4)));
        const auto a = ShardedMatrix::by_rows(communicator, 8, 4, memory.matrix(8, 4));
        const auto columns = ShardedMatrix::by_columns(communicator, 4, 8, memory.matrix(4, 8));
        DeviceBuffer<bf16> out(stream, 4096);
        const auto d = ShardedMatrix::by_columns(communicator, 8, 8, out.matrix(8, 8));
        const auto message = [&](const ShardedMatrix& left, const ShardedMatrix& right, const ShardedMatrix& to,
                                 const Epilogue& epilogue = {}) {
            const auto error = error_of([&] { ShardedGemm::prepare(communicator, left, right, to, epilogue); });
            return error ? std::string(error->message()) : std::string("no error");
        };
        CHECK(message(a, columns, whole(8, 8, out.matrix(8, 8))) ==
              "there is no product of A by_rows, B by_columns and D replicated");
        CHECK(message(a, ShardedMatrix::by_columns(communicator, 5, 8, memory.matrix(5, 8)), d) ==
              "rank 0: A is 8x4 by_rows, B is 5x8 by_columns, D is 8x8 by_columns");
        CHECK(message(ShardedMatrix::by_rows(communicator, 8, 4, memory.matrix<ColumnMajor>(8, 4)), columns, d) ==
              "rank 0: the rows of A are gathered, but A is column-major with a leading dimension of 8 and 4 columns");
        CHECK(message(a, columns, d, {.c = out.matrix(8, 8)}) == "C is not supported here");
        const auto blocks = ShardedMatrix::by_blocks(communicator, 8, 4, 1, 1, memory.matrix(8, 4));
        CHECK(blocks.describe() == "8x4 by_blocks (1x1 ranks along rows)");
        CHECK(message(blocks, columns, d) == "there is no product of A by_blocks, B by_columns and D by_columns");
        const auto product = ShardedGemm::prepare(communicator, a, columns, d);
        const auto other = error_of([&] {
            product.launch(stream, a, columns,
                           ShardedMatrix::by_columns(communicator, 8, 8, out.matrix<ColumnMajor>(8, 8)));
        });
        REQUIRE(other);
        CHECK(contains(other->what(),
                       "D is 8x8 by_columns, bf16 of 8x8, column-major with a leading dimension of 8, but"));
    });
    CHECK(errors.texts[0] == "");
}

TEST_CASE("blocks that do not fit together are refused with their grids")
{
    const RankErrors errors = run_two([](const Communicator& communicator) {
        const Stream stream(communicator.device());
        DeviceBuffer<bf16> memory(stream, 256);
        DeviceBuffer<bf16> out(stream, 256);
        const auto tall = [&](const MatrixOperand& local) {
            return ShardedMatrix::by_blocks(communicator, 16, 8, 2, 1, local);
        };
        const auto wide = ShardedMatrix::by_blocks(communicator, 8, 16, 1, 2, memory.matrix(8, 8));
        const auto d = ShardedMatrix::by_blocks(communicator, 16, 16, 1, 2, out.matrix(16, 8));
        const auto message = [&](const ShardedMatrix& a, const ShardedMatrix& b, const ShardedMatrix& to) {
            const auto error = error_of([&] { ShardedGemm::prepare(communicator, a, b, to); });
            return error ? std::string(error->message()) : std::string("no error");
        };
        CHECK(message(tall(memory.matrix(8, 8)), wide, d) == "no error");
        CHECK(message(tall(memory.matrix(8, 8)), wide,
                      ShardedMatrix::by_blocks(communicator, 16, 16, 2, 1, out.matrix(8, 16))) ==
              "there is no product of A 16x8 by_blocks (2x1 ranks along rows), B 8x16 by_blocks (1x2 ranks along rows) "
              "and "
              "D 16x16 by_blocks (2x1 ranks along rows)");
        CHECK(message(tall(memory.matrix<ColumnMajor>(8, 8, 9)), wide, d) ==
              fmt::format(
                  "rank {}: the rows of A are gathered, but A is column-major with a leading dimension of 9 and 8 "
                  "columns",
                  communicator.rank()));
    });
    CHECK(errors.texts[0] == "");
    CHECK(errors.texts[1] == "");
}

TEST_CASE("an error while the rows and columns of a grid are connected is the error of all")
{
    if (Device::count() != 4) {
        return;
    }
    const RankErrors errors = run_ranks(communicators_of(4, impatient), [](const Communicator& communicator) {
        const Stream stream(communicator.device());
        DeviceBuffer<bf16> memory(stream, 64);
        DeviceBuffer<bf16> out(stream, 64);
        const auto view = [&](DeviceBuffer<bf16>& of, GridOrder order) {
            return ShardedMatrix::by_blocks(communicator, 16, 16, 2, 2, of.matrix(8, 8), order);
        };
        if (communicator.rank() == 2) {
            FakeNccl::fail(2, 3, 3);  // after the agreement, the second of the two
        }
        const auto product =
            ShardedGemm::prepare(communicator, view(memory, GridOrder::along_rows),
                                 view(memory, GridOrder::along_columns), view(out, GridOrder::along_columns));
    });
    for (std::size_t rank = 0; rank < 4; ++rank) {
        CHECK(errors.culprits[rank] == 2);
        CHECK_MESSAGE(contains(errors.texts[rank], "returned internal error (3)"), errors.texts[rank]);
    }
    CHECK(FakeNccl::statistics().communicators == 0);
}

TEST_CASE("memory and streams of another device are refused")
{
    const RankErrors errors = run_two([](const Communicator& communicator) {
        const Device other(1 - communicator.device().ordinal());
        const Stream stream(other);
        const DeviceBuffer<bf16> memory(stream, 64);
        const auto error = error_of([&] { ShardedMatrix::replicated(communicator, 8, 8, memory.matrix(8, 8)); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::device_mismatch);
        const auto waits = error_of([&] { communicator.synchronize(stream); });
        REQUIRE(waits);
        CHECK(waits->code() == ErrorCode::device_mismatch);
    });
    CHECK(errors.none());
}

TEST_CASE("a communicator of somebody else's is used, and left alone")
{
    auto ours = communicators_of(2, {.copy_engines = false});
    std::vector<Communicator> borrowed;
    for (const Communicator& each : ours) {
        borrowed.push_back(Communicator::borrow(each.get(), impatient));
    }
    const RankErrors errors = run_ranks(std::move(borrowed), [](const Communicator& communicator) {
        CHECK(communicator.size() == 2);
        CHECK(communicator.rank() == communicator.device().ordinal());
        const SmallProduct product(communicator);
        product.launch();
        communicator.synchronize(product.stream());
    });
    CHECK(errors.none());
    CHECK(FakeNccl::statistics().communicators == 2);
    CHECK(error_of([] { Communicator::borrow(nullptr); }));
}

TEST_CASE("ranks meet by a broadcast of their own, also when one of them has nothing to say")
{
    const auto run = [](const std::vector<int>& devices) {
        std::promise<std::string> said;
        std::shared_future<std::string> heard = said.get_future().share();
        RankErrors errors{{"", ""}, {-2, -2}};
        std::vector<std::thread> threads;
        for (int rank = 0; rank < 2; ++rank) {
            threads.emplace_back([&, rank] {
                const auto at = static_cast<std::size_t>(rank);
                try {
                    const auto communicator = Communicator::from_broadcast(
                        rank, 2, devices[at],
                        [&](const std::string& text) {
                            CHECK(text.empty() == (rank == 1));
                            if (rank == 0) {
                                said.set_value(text);
                            }
                            return heard.get();
                        },
                        impatient);
                    const SmallProduct product(communicator);
                    product.launch();
                    communicator.synchronize(product.stream());
                } catch (const RankError& error) {
                    errors.texts[at] = error.what();
                    errors.culprits[at] = error.rank();
                } catch (const Error& error) {
                    errors.texts[at] = error.what();
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        return errors;
    };
    CHECK(run({0, 1}).none());
    const RankErrors errors = run({99, 1});
    CHECK(contains(errors.texts[0], "99"));
    CHECK(errors.culprits[1] == 0);
    CHECK(contains(errors.texts[1], "rank 0 of 2 failed"));
    CHECK(contains(errors.texts[1], "99"));
    CHECK(FakeNccl::statistics().communicators == 0);
}

TEST_CASE("devices are named once")
{
    const auto twice = error_of([] { Communicator::of_devices(std::vector<int>{0, 0}); });
    REQUIRE(twice);
    CHECK(twice->message() == "device 0 is named twice");
    const auto nobody = error_of([] { Communicator::of_devices({}); });
    REQUIRE(nobody);
    CHECK(nobody->message() == "there are no devices");
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
