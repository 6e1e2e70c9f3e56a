/// A kernel that leaves a view's bounds, or drops a slot of a ring, is stopped. The device's context is lost
/// afterwards, so each mistake is its own process: view_mistake_test <mistake>.

#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "tessera/tessera.hpp"
#include "view_kernels.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr int exit_skipped = 77;

constexpr std::pair<std::string_view, Mistake> mistakes[] = {
    {"none", Mistake::none},
    {"row_below", Mistake::row_below},
    {"row_above", Mistake::row_above},
    {"column_below", Mistake::column_below},
    {"column_above", Mistake::column_above},
    {"block", Mistake::block},
    {"tile", Mistake::tile},
    {"batch", Mistake::batch},
    {"disjoint", Mistake::disjoint},
};

constexpr std::pair<std::string_view, SlotMistake> slot_mistakes[] = {
    {"slot_published", SlotMistake::none},
    {"slot_dropped", SlotMistake::dropped},
    {"slot_filled_with_nothing", SlotMistake::filled_with_nothing},
};

/// Returns 0 if the device's context was lost exactly when it should be.
int judge(const Stream& stream, bool is_mistake)
{
    try {
        stream.synchronize();
    } catch (const Error& error) {
        std::printf("%s\n", error.what());
        return error.code() == ErrorCode::context_lost && is_mistake ? 0 : 1;
    }
    return is_mistake ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv)
{
    if (Device::count() == 0) {
        std::printf("skipped: this test needs a CUDA device\n");
        return exit_skipped;
    }
    const std::string_view name = argc > 1 ? argv[1] : "";
    const Stream stream;
    for (const auto& [known, mistake] : slot_mistakes) {
        if (known == name) {
            if (!Device::current().properties().has_tensor_maps) {
                std::printf("skipped: this test needs compute capability 9.0\n");
                return exit_skipped;
            }
            launch(misuse_slot_kernel(), LaunchConfig(stream, {1}, {32}), mistake);
            return judge(stream, mistake != SlotMistake::none);
        }
    }
    for (const auto& [known, mistake] : mistakes) {
        if (known == name) {
            DeviceBuffer<float> memory(stream, 100);  // a wrong index stays within it
            const bool is_disjoint = mistake == Mistake::disjoint;
            launch(mistake_kernel(), LaunchConfig(stream, {1}, {1}),
                   is_disjoint ? memory.subspan(40, 60).matrix(0, 6) : memory.subspan(40, 60).matrix(4, 6), mistake);
            return judge(stream, mistake != Mistake::none);
        }
    }
    std::printf("usage: view_mistake_test <mistake>\n");
    return 2;
}
