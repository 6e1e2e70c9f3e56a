/// The SIMT ladder's bits: one line with a checksum of D for each product and rung, for comparing devices.
///
///     ladder_checksums                                  prints them
///     ladder_checksums --check h200_checksums.txt       compares with a file that it printed, and prints what differs
///
/// GELU and SiLU use ex2.approx and rcp.approx, whose results the PTX ISA only bounds. Their values are printed and compared within
/// `largest_difference`. That all rungs give the same bits is required of them, too.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ladder_problem.hpp"
#include "support/checksums.hpp"
#include "support/variants.hpp"
#include "tessera/tessera.hpp"

namespace tessera::ladder {
namespace {

using namespace test;

/// The part of the ladder that gives the same bits on every device.
template <class Use>
void with_type(ElementType type, Use&& use)
{
    switch (type) {
        case ElementType::f16: use(f16{}); return;
        case ElementType::bf16: use(bf16{}); return;
        default: use(f32{}); return;
    }
}

template <class Use>
void with_order(bool row_major, Use&& use)
{
    if (row_major) {
        use(RowMajor{});
    } else {
        use(ColumnMajor{});
    }
}

template <class T>
DeviceSpan<T> span_of(DeviceBuffer<std::byte>& buffer)
{
    return {reinterpret_cast<T*>(buffer.data()), buffer.size() / sizeof(T), buffer.device()};
}

/// The operands in device memory, and D's bytes after a launch.
class DeviceOperands {
public:
    DeviceOperands(StreamRef stream, const Problem& problem)
        : stream_(stream),
          problem_(problem),
          host_(problem),
          a_(upload(host_.a.bytes)),
          b_(upload(host_.b.bytes)),
          c_(upload(host_.c.bytes)),
          d_(upload(host_.d.bytes)),
          bias_(upload(host_.bias))
    {}

    /// Nothing if the variant refuses, as it does if its alignment is not met.
    std::optional<std::vector<std::byte>> launch(Variant variant)
    {
        d_.copy_from(host_.d.bytes);
        try {
            launch_typed(variant);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::variant_refused) {
                throw;
            }
            return std::nullopt;
        }
        std::vector<std::byte> result(host_.d.bytes.size());
        d_.copy_to(result);
        return result;
    }

private:
    DeviceBuffer<std::byte> upload(const std::vector<std::byte>& bytes) const
    {
        return DeviceBuffer<std::byte>::from_host(stream_, bytes);
    }

    template <class T, class Order>
    BatchView<T, Order> view(DeviceBuffer<std::byte>& buffer, const HostBatch& host, Order order)
    {
        return span_of<T>(buffer).matrices(problem_.batches, host.batch_stride, host.rows, host.columns,
                                           host.leading_dimension, order);
    }

    void launch_typed(Variant variant)
    {
        Epilogue epilogue;
        epilogue.alpha = problem_.alpha;
        epilogue.beta = problem_.beta;
        epilogue.activation = problem_.activation;
        with_type(problem_.bias_type, [&]<class T>(T) {
            if (problem_.bias != BiasAxis::none) {
                const auto vector = span_of<const T>(bias_);
                const auto size =
                    static_cast<std::size_t>(problem_.bias == BiasAxis::per_row ? problem_.m : problem_.n);
                epilogue.bias = problem_.bias == BiasAxis::per_row ? Bias::per_row(vector.subspan(0, size))
                                                                   : Bias::per_column(vector.subspan(0, size));
            }
        });
        with_type(problem_.input, [&]<class In>(In) {
            with_type(problem_.output, [&]<class Out>(Out) {
                if (problem_.addend == Addend::separate) {
                    with_order(host_.c.row_major,
                               [&](auto order) { epilogue.c = view<const Out>(c_, host_.c, order); });
                }
                with_order(host_.d.row_major, [&](auto d_order) {
                    const auto d = view<Out>(d_, host_.d, d_order);
                    if (problem_.addend == Addend::in_place) {
                        epilogue.c = d;
                    }
                    with_order(host_.a.row_major, [&](auto a_order) {
                        with_order(host_.b.row_major, [&](auto b_order) {
                            Gemm::launch(stream_, view<const In>(a_, host_.a, a_order),
                                         view<const In>(b_, host_.b, b_order), d, epilogue, variant);
                        });
                    });
                });
            });
        });
    }

    StreamRef stream_;
    const Problem& problem_;
    HostOperands host_;
    DeviceBuffer<std::byte> a_;
    DeviceBuffer<std::byte> b_;
    DeviceBuffer<std::byte> c_;
    DeviceBuffer<std::byte> d_;
    DeviceBuffer<std::byte> bias_;
};

Results compute_checksums(StreamRef stream)
{
    Results results;
    for (const Problem& problem : problems()) {
        DeviceOperands operands(stream, problem);
        for (const Variant variant : simt_variants()) {
            if (problem.only_register_blocked && variant != Variant::simt_register_blocked) {
                continue;
            }
            const auto d = operands.launch(variant);
            const std::string name = fmt::format("{} {:016x} {}", problem.describe(), problem.seed, to_string(variant));
            if (!results.emplace(name, d ? fmt::format("{:016x}", checksum(*d)) : "refused").second) {
                throw std::logic_error("two products have one description: " + name);
            }
        }
    }
    return results;
}

std::string hexadecimal(const std::vector<std::byte>& bytes, std::size_t element_bytes)
{
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += element_bytes) {
        std::uint32_t element = 0;
        std::memcpy(&element, bytes.data() + i, element_bytes);
        text += fmt::format("{}{:0{}x}", i == 0 ? "" : ",", element, 2 * element_bytes);
    }
    return text;
}

std::string activation_name(const Problem& problem)
{
    return fmt::format("{} of {} arguments, as {}", to_string(problem.activation), problem.m,
                       to_string(problem.output));
}

/// The values of the naive rung. @throws std::runtime_error if another rung gives other bits
Results compute_activations(StreamRef stream)
{
    Results results;
    for (const Problem& problem : activation_problems()) {
        DeviceOperands operands(stream, problem);
        const auto d = operands.launch(Variant::simt_naive);
        for (const Variant variant : simt_variants()) {
            const auto other = operands.launch(variant);
            if (other && *other != *d) {
                throw std::runtime_error(
                    fmt::format("{}: {} and simt_naive differ", problem.describe(), to_string(variant)));
            }
        }
        results.emplace(activation_name(problem), hexadecimal(d.value(), size_of(problem.output)));
    }
    return results;
}

double value_of(std::uint32_t bits, ElementType type)
{
    switch (type) {
        case ElementType::f16: return f16::from_bits(static_cast<std::uint16_t>(bits));
        case ElementType::bf16: return bf16::from_bits(static_cast<std::uint16_t>(bits));
        default: break;
    }
    return std::bit_cast<float>(bits);
}

/// The largest difference between two devices. Both activations are x / (1 + 2^e). The PTX ISA bounds the relative error of
/// ex2.approx.ftz.f32 by 2^-22 and that of rcp.approx.ftz.f32 by one unit in the last place. If the second device rounds
/// correctly, the two powers differ by less than 2^-21.5, the reciprocals by 2^-22.4 more, and three roundings may differ:
/// less than |y| * 2^-20. Plus one spacing of the output type, if the last rounding differs.
double largest_difference(const Problem& problem, double y)
{
    const int precision = problem.output == ElementType::f32 ? 24 : problem.output == ElementType::f16 ? 11 : 8;
    const int lowest = problem.output == ElementType::f16 ? -24 : problem.output == ElementType::f32 ? -149 : -133;
    const double spacing = y == 0 ? 0 : std::ldexp(1, std::max(std::ilogb(y) + 1 - precision, lowest));
    return std::abs(y) * 0x1p-20 + spacing;
}

std::vector<std::uint32_t> numbers(const std::string& text)
{
    std::vector<std::uint32_t> values;
    for (std::size_t at = 0; at < text.size();
         at = text.find(',', at) == text.npos ? text.size() : text.find(',', at) + 1) {
        values.push_back(static_cast<std::uint32_t>(std::stoul(text.substr(at), nullptr, 16)));
    }
    return values;
}

/// As compare_checksums, for values within largest_difference.
int compare_activations(const Results& stored, const Results& computed)
{
    const std::vector<std::uint32_t> arguments = activation_arguments();
    int outside = 0;
    for (const Problem& problem : activation_problems()) {
        const std::string name = activation_name(problem);
        const std::vector<std::uint32_t> ours = numbers(computed.at(name));
        const auto found = stored.find(name);
        const std::vector<std::uint32_t> theirs = found == stored.end() ? ours : numbers(found->second);
        if (found == stored.end() || theirs.size() != ours.size()) {
            ++outside;
            fmt::print("{}: not stored, or with another number of values\n", name);
            continue;
        }
        int differing = 0;
        for (std::size_t i = 0; i < ours.size(); ++i) {
            if (ours[i] == theirs[i]) {
                continue;
            }
            ++differing;
            const double x = std::bit_cast<float>(arguments[i]);
            const double ours_value = value_of(ours[i], problem.output);
            const double theirs_value = value_of(theirs[i], problem.output);
            if (!(std::abs(ours_value - theirs_value) <= largest_difference(problem, theirs_value))) {
                ++outside;
                fmt::print("{}: at {} stored {} ({:x}), computed {} ({:x})\n", name, x, theirs_value, theirs[i],
                           ours_value, ours[i]);
            }
        }
        fmt::print("{}: {} differ within the bound\n", name, differing);
    }
    return outside;
}

void print(const Results& results)
{
    for (const auto& [name, result] : results) {
        fmt::print("{}  {}\n", result, name);
    }
}

int run(int argc, char** argv)
{
    CLI::App app("Checksums of what the SIMT ladder computes, to compare devices by");
    std::string stored;
    app.add_option("--check", stored, "compare with the lines of this file, which this program printed");
    CLI11_PARSE(app, argc, argv);
    if (Device::count() == 0) {
        fmt::print(stderr, "ladder_checksums: skipped, because this machine has no CUDA device\n");
        return 77;
    }
    Stream stream;
    const Results checksums = compute_checksums(stream);
    const Results activations = compute_activations(stream);
    if (stored.empty()) {
        print(checksums);
        print(activations);
        return 0;
    }
    Results stored_checksums = read_results(stored);
    Results stored_activations;
    for (const auto& [name, values] : activations) {
        if (auto node = stored_checksums.extract(name)) {
            stored_activations.insert(std::move(node));
        }
    }
    const int differing = compare_checksums(stored_checksums, checksums);
    return differing + compare_activations(stored_activations, activations) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tessera::ladder

int main(int argc, char** argv)
try {
    return tessera::ladder::run(argc, argv);
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
