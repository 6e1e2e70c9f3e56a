#include "options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "common/run_example.hpp"

namespace {

constexpr const char* description =
    "Multiplies two matrices from .npy files on the GPU: D = epilogue(alpha * A*B + beta * C + bias)";

constexpr const char* footer =
    "A, B, C and the bias are .npy files of any NumPy integer or float type, matrices in C or Fortran order. A and B "
    "are\n"
    "converted to --type (8-bit types with a scale, so that the largest element becomes the type's largest value), C "
    "to\n"
    "--output-type, the bias to float32. D is stored as float32 or float16; bf16 is stored as float32, since NumPy has "
    "no\n"
    "type for it.\n"
    "\n"
    "Exit codes: 0 done, 1 an error or a wrong result, 2 bad command line, 77 no CUDA device.";

/// An option whose value is one of `values`, written by name.
template <class T>
void add_choice(CLI::App& app, const std::string& option, T& target, const std::vector<T>& values,
                const std::string& help)
{
    std::vector<std::string> names;
    for (const T value : values) {
        names.emplace_back(to_string(value));
    }
    app.add_option_function<std::string>(
           option,
           [&target, names, values](const std::string& name) {
               const auto index = std::find(names.begin(), names.end(), name) - names.begin();
               target = values[static_cast<std::size_t>(index)];
           },
           help)
        ->check(CLI::IsMember(names));
}

/// "9.0" to 90.
int parse_compute_capability(const std::string& text)
{
    int major = 0;
    int minor = 0;
    char rest = 0;
    if (std::sscanf(text.c_str(), "%2d.%1d%c", &major, &minor, &rest) != 2 || major < 0 || minor < 0) {
        throw CLI::ValidationError("--compute-capability", "'" + text + "' is not of the form 9.0");
    }
    return 10 * major + minor;
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_code)
{
    using tessera::Activation;
    using tessera::ElementType;
    using tessera::Variant;

    Options options;
    options.seed = std::random_device{}();
    const std::vector<ElementType> output_types{ElementType::f32, ElementType::f16, ElementType::bf16};
    std::vector<ElementType> types = output_types;
    types.insert(types.end(), {ElementType::tf32, ElementType::f8e4m3, ElementType::f8e5m2});
    std::vector<Variant> variants = tessera::all_variants();
    variants.insert(variants.begin(), Variant::automatic);
    std::string bias_per_row;
    std::string bias_per_column;

    CLI::App app(description, "gemm_npy");
    app.footer(footer);
    app.add_option("A", options.a, "left matrix, M x K")->required()->type_name("A.npy");
    app.add_option("B", options.b, "right matrix, K x N")->required()->type_name("B.npy");
    app.add_option("-o,--output", options.d, "where to store D; without it D is not stored")->type_name("D.npy");
    add_choice(app, "--variant", options.variant, variants, "the kernel to use (default: automatic)");
    add_choice(app, "--type", options.type, types, "what A and B are converted to before the product (default: f32)");
    add_choice(app, "--output-type", options.output_type, output_types,
               "type of C and D (default: the same as --type, or f32 if D cannot have that)");
    add_choice(app, "--epilogue", options.activation,
               {tessera::all_activations.begin(), tessera::all_activations.end()},
               "the activation, applied last (default: none)");
    app.add_option("--alpha", options.alpha, "scale of A*B (default: 1)")->type_name("NUMBER");
    CLI::Option* const beta = app.add_option("--beta", options.beta, "scale of C (default: 1)")->type_name("NUMBER");
    CLI::Option* const c = app.add_option("--c", options.c, "matrix to add, M x N")->type_name("C.npy");
    beta->needs(c);
    CLI::Option* const per_row =
        app.add_option("--bias-per-row", bias_per_row, "vector of M: element i is added to row i")->type_name("V.npy");
    app.add_option("--bias-per-column", bias_per_column, "vector of N: element j is added to column j")
        ->type_name("V.npy")
        ->excludes(per_row);
    app.add_flag("--verify", options.verify, "compare D with float64 arithmetic on the CPU, within an error bound");
    app.add_option("--seed", options.seed, "of the rows that --verify samples when there are many (default: random)")
        ->type_name("NUMBER");
    app.add_option("--repeat", options.repeat, "launches to time (default: 10)")
        ->type_name("COUNT")
        ->check(CLI::Range(1, 1000000));
    app.add_option("--device", options.device, "CUDA's number of the device (default: 0)")
        ->type_name("N")
        ->check(CLI::Range(0, 1023));
    CLI::Option* const explain =
        app.add_flag("--explain", options.explain, "print which variant runs and why, and do not run it");
    app.add_option_function<std::string>(
           "--compute-capability",
           [&](const std::string& text) { options.compute_capability = parse_compute_capability(text); },
           "explain for a device of this compute capability, e.g. 9.0, present or not")
        ->type_name("X.Y")
        ->needs(explain);

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        exit_code = app.exit(error) == 0 ? examples::exit_success : examples::exit_usage;
        return std::nullopt;
    }
    if (app.count("--output-type") == 0) {
        options.output_type = is_addend(options.type) ? options.type : ElementType::f32;
    }
    if (!bias_per_row.empty() || !bias_per_column.empty()) {
        options.bias_axis = bias_per_row.empty() ? tessera::BiasAxis::per_column : tessera::BiasAxis::per_row;
        options.bias = bias_per_row.empty() ? bias_per_column : bias_per_row;
    }
    return options;
}
