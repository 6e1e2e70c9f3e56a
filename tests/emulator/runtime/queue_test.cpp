/// Queues: order, waits across queues, and a host that continues.

#include "runtime/queue.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

using namespace tessera::emulator;

TEST_CASE("work is done in order while the host continues")
{
    auto queue = std::make_shared<Queue>();
    std::atomic<bool> open{false};
    std::vector<int> done;
    queue->enqueue({}, [&] {
        while (!open) {
            std::this_thread::yield();
        }
        done.push_back(0);
    });
    for (int i = 1; i < 100; ++i) {
        queue->enqueue({}, [&done, i] { done.push_back(i); });
    }
    CHECK_FALSE(queue->is_idle());
    CHECK_FALSE(queue->last().is_reached());
    open = true;
    queue->last().wait();
    CHECK(queue->is_idle());
    REQUIRE(done.size() == 100);
    for (int i = 0; i < 100; ++i) {
        CHECK(done[static_cast<std::size_t>(i)] == i);
    }
}

TEST_CASE("a wait for another queue delays only the work that waits")
{
    auto first = std::make_shared<Queue>();
    auto second = std::make_shared<Queue>();
    auto third = std::make_shared<Queue>();
    std::atomic<bool> open{false};
    std::atomic<int> order{0};
    int of_first = -1;
    int of_second = -1;
    const Position held = first->enqueue({}, [&] {
        while (!open) {
            std::this_thread::yield();
        }
        of_first = order++;
    });
    const Position waiting = second->enqueue({held}, [&] { of_second = order++; });
    third->enqueue({}, [] {}).wait();
    CHECK_FALSE(waiting.is_reached());
    open = true;
    waiting.wait();
    CHECK(of_first == 0);
    CHECK(of_second == 1);
    CHECK(Position{}.is_reached());
}

TEST_CASE("a queue wakes up after being idle, and finishes its work without an owner")
{
    auto queue = std::make_shared<Queue>();
    std::atomic<int> count{0};
    queue->enqueue({}, [&] { ++count; }).wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    queue->enqueue({}, [&] { ++count; }).wait();
    CHECK(count == 2);
    Position last;
    {
        auto gone = std::make_shared<Queue>();
        last = gone->enqueue({}, [&] { ++count; });
    }
    last.wait();
    CHECK(count == 3);
}

TEST_CASE("many queues with random waits finish, and every wait is respected")
{
    std::mt19937 random(7);
    std::vector<std::shared_ptr<Queue>> queues;
    for (int i = 0; i < 8; ++i) {
        queues.push_back(std::make_shared<Queue>());
    }
    std::vector<std::atomic<bool>> done(2000);
    std::vector<Position> positions;
    std::atomic<int> broken{0};
    for (std::size_t i = 0; i < done.size(); ++i) {
        std::vector<Position> waits;
        std::vector<std::size_t> names;
        for (int w = 0; w < 2 && !positions.empty(); ++w) {
            names.push_back(random() % positions.size());
            waits.push_back(positions[names.back()]);
        }
        positions.push_back(queues[random() % queues.size()]->enqueue(waits, [&, i, names] {
            for (const std::size_t name : names) {
                broken += done[name] ? 0 : 1;
            }
            done[i] = true;
        }));
    }
    for (const Position& position : positions) {
        position.wait();
    }
    CHECK(broken == 0);
}

TEST_CASE("when work is seen complete, the instant work after it is complete, too")
{
    for (int round = 0; round < 300; ++round) {
        auto queue = std::make_shared<Queue>();
        std::atomic<bool> open{false};
        const Position first = queue->enqueue({}, [&] {
            while (!open) {
                std::this_thread::yield();
            }
        });
        const Position instant = queue->enqueue({}, [] {}, true);
        open = true;
        first.wait();
        REQUIRE(instant.is_reached());
    }
}
