// Facts about mbarriers: what a thread sees after each of a sequence of operations.

#include <sstream>

#include "device_ptx.cuh"
#include "facts.hpp"

namespace tessera::truth {
namespace {

enum class Step : int {
    init,
    arrive,         ///< count; keeps the state token
    arrive_one,     ///< without a count; keeps the state token
    drop,           ///< arrive_drop; keeps the state token
    no_complete,    ///< arrive.noComplete with a count; keeps the state token
    expect,         ///< bytes
    complete,       ///< bytes
    arrive_expect,  ///< bytes; keeps the state token
    parity,         ///< test_wait.parity
    token,          ///< test_wait of the token kept
    pending,        ///< pending_count of the token kept
};

struct Operation {
    Step step = Step::init;
    unsigned value = 0;
};

__global__ void execute(const Operation* operations, int count, unsigned* answers)
{
    __shared__ alignas(8) std::uint64_t object;
    const std::uint32_t barrier = shared_address(&object);
    std::uint64_t token = 0;
    for (int i = 0; i < count; ++i) {
        const unsigned value = operations[i].value;
        unsigned answer = untouched_word;
        switch (operations[i].step) {
            case Step::init: barrier_init(barrier, value); break;
            case Step::arrive:
                asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], %2;"
                             : "=l"(token)
                             : "r"(barrier), "r"(value)
                             : "memory");
                break;
            case Step::arrive_one:
                asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(barrier) : "memory");
                break;
            case Step::drop:
                asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1], %2;"
                             : "=l"(token)
                             : "r"(barrier), "r"(value)
                             : "memory");
                break;
            case Step::no_complete:
                asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], %2;"
                             : "=l"(token)
                             : "r"(barrier), "r"(value)
                             : "memory");
                break;
            case Step::expect:
                asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(value)
                             : "memory");
                break;
            case Step::complete:
                asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;" ::"r"(barrier),
                             "r"(value)
                             : "memory");
                break;
            case Step::arrive_expect:
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;"
                             : "=l"(token)
                             : "r"(barrier), "r"(value)
                             : "memory");
                break;
            case Step::parity: answer = test_parity(barrier, value); break;
            case Step::token:
                asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                             : "=r"(answer)
                             : "r"(barrier), "l"(token)
                             : "memory");
                break;
            case Step::pending: asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(answer) : "l"(token)); break;
        }
        answers[i] = answer;
    }
}

/// Parses the words of a script, as below.
std::vector<Operation> parse(const std::string& script)
{
    const std::pair<const char*, Step> words[] = {
        {"init", Step::init},
        {"arrive", Step::arrive},
        {"arrive_one", Step::arrive_one},
        {"drop", Step::drop},
        {"no_complete", Step::no_complete},
        {"expect", Step::expect},
        {"complete", Step::complete},
        {"arrive_expect", Step::arrive_expect},
        {"parity", Step::parity},
        {"token", Step::token},
        {"pending", Step::pending},
    };
    std::vector<Operation> operations;
    std::istringstream stream(script);
    for (std::string word; stream >> word;) {
        const std::size_t split = word.find(':');
        bool known = false;
        for (const auto& [name, step] : words) {
            if (word.substr(0, split) == name) {
                operations.push_back({step, split == std::string::npos
                                                ? 0U
                                                : static_cast<unsigned>(std::stoul(word.substr(split + 1)))});
                known = true;
            }
        }
        if (!known) {
            std::fprintf(stderr, "no such step: %s\n", word.c_str());
            std::exit(1);
        }
    }
    return operations;
}

/// Scripts of steps "word:value". The answers of the steps are the fact.
constexpr const char* scripts[] = {
    "init:1 parity:0 parity:1",
    "init:1 arrive:1 pending token parity:0 parity:1 arrive:1 pending token parity:0 parity:1 arrive:1 pending",
    "init:1 arrive_one pending token parity:0 parity:1",
    "init:3 arrive_one pending parity:0 arrive_one pending token parity:0 arrive_one pending token parity:0",
    "init:5 arrive:2 pending token arrive:3 pending token parity:0 parity:1",
    "init:5 arrive:5 pending token parity:0 arrive:4 pending parity:1 arrive:1 parity:1 parity:0",
    "init:1048575 arrive:1 pending arrive:1048574 pending parity:0",
    "init:2 no_complete:1 pending token parity:0 arrive:1 pending token parity:0",
    "init:1 expect:64 arrive:1 pending parity:0 complete:32 parity:0 complete:32 parity:0 parity:1 token",
    "init:1 complete:64 parity:0 expect:64 parity:0 arrive:1 parity:0 parity:1",
    "init:1 complete:64 arrive_expect:64 pending token parity:0 parity:1",
    "init:1 arrive_expect:64 pending token parity:0 complete:64 token parity:0 parity:1",
    "init:1 arrive_expect:0 pending token parity:0 parity:1",
    "init:2 arrive_expect:64 arrive_expect:32 pending parity:0 complete:64 parity:0 complete:32 parity:0 parity:1",
    "init:2 expect:64 complete:64 parity:0 arrive:1 parity:0 arrive:1 parity:0",
    "init:2 arrive:1 complete:16 parity:0 arrive_expect:48 parity:0 complete:32 parity:0",
    "init:1 arrive:1 complete:16 parity:0 parity:1 arrive_expect:16 parity:0 parity:1",
    "init:1 arrive_expect:1048575 parity:0 complete:1048575 parity:0",
    "init:1 complete:1048575 arrive_expect:1048575 parity:0",
    "init:3 drop:1 pending parity:0 arrive:2 pending parity:0 arrive:1 pending parity:1 arrive:1 pending parity:1",
    "init:2 drop:2 pending token parity:0 parity:1",
    "init:1 arrive:1 token init:1 token parity:0 parity:1",
};

/// More arrivals than a phase expects.
constexpr const char* faulty_scripts[] = {
    "init:1 arrive_expect:16 arrive_one pending complete:16 parity:0 parity:1",
    "init:2 arrive:3 pending parity:0",
    "init:1 expect:1048575 expect:1 parity:0",
    "init:1 drop:1 arrive_one pending parity:0 parity:1",
    "init:0 parity:0",
};

void ask_sequence(Facts& facts, const char* script)
{
    const std::vector<Operation> operations = parse(script);
    const DeviceArray<Operation> program(operations);
    const DeviceArray<unsigned> answers(std::vector<unsigned>(operations.size(), untouched_word));
    execute<<<1, 1>>>(program.data(), static_cast<int>(operations.size()), answers.data());
    std::string text = outcome();
    if (text.empty()) {
        for (const unsigned answer : answers.values()) {
            if (answer != untouched_word) {
                text += (text.empty() ? "" : " ") + std::to_string(answer);
            }
        }
    }
    facts.add(std::string("mbarrier ") + script, text);
}

void ask_sequences(Facts& facts, int)
{
    for (const char* const script : scripts) {
        ask_sequence(facts, script);
    }
}
void ask_faulty_sequence(Facts& facts, int index) { ask_sequence(facts, faulty_scripts[index]); }

}  // namespace

std::vector<Section> barrier_sections()
{
    std::vector<Section> sections = {{"mbarrier", ask_sequences}};
    for (int index = 0; index < static_cast<int>(std::size(faulty_scripts)); ++index) {
        sections.push_back({"mbarrier", ask_faulty_sequence, index});
    }
    return sections;
}

}  // namespace tessera::truth
