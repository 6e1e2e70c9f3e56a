// Where diverged lanes join again: immediate post-dominators of branches, after Cooper, Harvey and Kennedy, "A Simple,
// Fast Dominance Algorithm".

#include <algorithm>
#include <vector>

#include "program/control_flow.hpp"

namespace tessera::emulator {

namespace {

constexpr std::uint32_t none = 0xFFFFFFFF;

struct Blocks {
    std::vector<std::uint32_t> starts;                   // first operation, relative to the function
    std::vector<std::uint32_t> block_of;                 // by operation
    std::vector<std::vector<std::uint32_t>> successors;  // the last block is the exit
    std::vector<std::vector<std::uint32_t>> predecessors;
};

[[nodiscard]] Blocks find_blocks(const Program& program, std::uint32_t first, std::uint32_t count)
{
    std::vector<bool> leader(count + 1, false);
    leader[0] = true;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (is_branch(program, first + i)) {
            for (const std::uint32_t target : targets_of(program, first + i)) {
                leader[target - first] = true;
            }
            leader[i + 1] = true;
        } else if (ends_flow(program, first + i)) {
            leader[i + 1] = true;
        }
    }
    Blocks blocks;
    blocks.block_of.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        if (leader[i]) {
            blocks.starts.push_back(i);
        }
        blocks.block_of[i] = static_cast<std::uint32_t>(blocks.starts.size() - 1);
    }
    const auto exit = static_cast<std::uint32_t>(blocks.starts.size());
    blocks.successors.resize(exit + 1);
    blocks.predecessors.resize(exit + 1);
    const auto connect = [&](std::uint32_t from, std::uint32_t to) {
        if (std::ranges::find(blocks.successors[from], to) == blocks.successors[from].end()) {
            blocks.successors[from].push_back(to);
            blocks.predecessors[to].push_back(from);
        }
    };
    for (std::uint32_t b = 0; b < exit; ++b) {
        const std::uint32_t last = (b + 1 < exit ? blocks.starts[b + 1] : count) - 1;
        if (ends_flow(program, first + last)) {
            connect(b, exit);
        }
        for_each_successor(program, first + last, [&](std::uint32_t next) {
            connect(b, next - first < count ? blocks.block_of[next - first] : exit);
        });
    }
    return blocks;
}

/// Immediate post-dominator of each block; `none` for blocks that never reach the exit.
[[nodiscard]] std::vector<std::uint32_t> post_dominators(const Blocks& blocks)
{
    const auto count = static_cast<std::uint32_t>(blocks.successors.size());
    const std::uint32_t exit = count - 1;
    // Post-order of the reversed graph.
    std::vector<std::uint32_t> order, number(count, none);
    std::vector<std::pair<std::uint32_t, std::size_t>> stack{{exit, 0}};
    std::vector<bool> seen(count, false);
    seen[exit] = true;
    while (!stack.empty()) {
        auto& [block, next] = stack.back();
        if (next < blocks.predecessors[block].size()) {
            const std::uint32_t to = blocks.predecessors[block][next++];
            if (!seen[to]) {
                seen[to] = true;
                stack.emplace_back(to, 0);
            }
        } else {
            number[block] = static_cast<std::uint32_t>(order.size());
            order.push_back(block);
            stack.pop_back();
        }
    }
    std::vector<std::uint32_t> dominator(count, none);
    dominator[exit] = exit;
    for (bool changed = true; changed;) {
        changed = false;
        for (auto block = order.rbegin(); block != order.rend(); ++block) {
            if (*block == exit) {
                continue;
            }
            std::uint32_t common = none;
            for (const std::uint32_t successor : blocks.successors[*block]) {
                if (dominator[successor] == none) {
                    continue;
                }
                if (common == none) {
                    common = successor;
                    continue;
                }
                std::uint32_t a = successor, b = common;
                while (a != b) {
                    while (number[a] < number[b]) {
                        a = dominator[a];
                    }
                    while (number[b] < number[a]) {
                        b = dominator[b];
                    }
                }
                common = a;
            }
            if (common != none && dominator[*block] != common) {
                dominator[*block] = common;
                changed = true;
            }
        }
    }
    return dominator;
}

}  // namespace

void find_joins(Program& program, std::uint32_t first, std::uint32_t last)
{
    std::vector<Operation>& operations = program.operations;
    const Blocks blocks = find_blocks(program, first, last - first);
    const std::vector<std::uint32_t> dominator = post_dominators(blocks);
    const auto exit = static_cast<std::uint32_t>(blocks.starts.size());
    for (std::uint32_t i = first; i < last; ++i) {
        if (!is_branch(program, i)) {
            if (program.effects.of(i).control == Flow::call && i + 1 < last) {
                operations[i + 1].join = true;
            }
            continue;
        }
        const std::uint32_t block = dominator[blocks.block_of[i - first]];
        if (block == none || block == exit) {
            continue;
        }
        const std::uint32_t join = first + blocks.starts[block];
        if (!falls_through(program, join) && !is_branch(program, join)) {
            continue;  // only the end is left: lanes that leave early must not wait for those that meet at a barrier
        }
        // The payload belongs to the current builder; Operation only has const access.
        const_cast<BranchPayload&>(operations[i].as<BranchPayload>()).join = join;
        operations[join].join = true;
    }
}

std::vector<bool> operations_before(const Program& program, std::uint32_t first, std::uint32_t last,
                                    std::uint32_t target)
{
    std::vector<bool> before(last - first, false);
    for (bool again = true; again;) {  // backward, so that only backward jumps need another pass
        again = false;
        for (std::uint32_t i = last; i-- > first;) {
            if (before[i - first]) {
                continue;
            }
            for_each_successor(program, i, [&](std::uint32_t next) {
                if (next == target || (next < last && before[next - first])) {
                    before[i - first] = again = true;
                }
            });
        }
    }
    return before;
}

}  // namespace tessera::emulator
