/// The module `tessera._core`: what the package's Python files hand on to its users.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "array.hpp"
#include "distributed.hpp"
#include "errors.hpp"
#include "host_values.hpp"
#include "operand.hpp"
#include "product.hpp"
#include "program.hpp"
#include "workspace.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tessera::python {
namespace {

constexpr const char* gemm_signature =
    "def gemm(a, b, *, out=None, bias=None, activation=None, c=None, alpha=1.0, beta=None, scale_a=None, scale_b=None, "
    "out_dtype=None, gating=None, pre_activation=None, scale_d=None, amax_d=None, tf32=False, fp8_accumulation=None, "
    "f16_accumulation=None, variant=None, workspace_limit=None, stream=None)";

constexpr const char* gemm_text = R"(Returns act(alpha * a @ b + beta * c + bias), computed on the device in one kernel.

a is (..., m, k), b is (..., k, n) and the result is (..., m, n). Dimensions before the last two are batches, which are
broadcast as in numpy. Each array may be transposed or a slice: rows or columns must be contiguous, and nothing is copied.
Arrays of torch give a tensor of torch, of its allocator and on its current stream; other arrays are taken by DLPack or by
the CUDA array interface. The call does not wait for the device.

out             receives the result and is returned; otherwise a new array is
bias            (n,) is added to every row, (m, 1) to every column; f32, f16 or bf16
activation      "relu", "gelu", "gelu_tanh", "silu", "sigmoid" or "tanh"
c, beta         an array of the result's type that is added; beta is 1 if it is left out
alpha           a number that the product is multiplied with
scale_a         f32 on the device: one, or one for each row of a
scale_b         f32 on the device: one, or one for each column of b
out_dtype       type of the result: a's, or "bf16" if that has 8 bits
gating          "interleaved" or "side_by_side": pairs of columns become act(gate) * up, and the result has n/2 columns
pre_activation  receives the argument of the activation
scale_d, amax_d f32 on the device, for a result of 8 bits: multiplies it; is raised to its largest magnitude
tf32            True: f32 inputs are multiplied on tensor cores, which read 10 bits of their significand
fp8_accumulation, f16_accumulation   "fast"; "in_f16": faster sums, less precise
variant         a kernel family by name, such as "simt_tiled"; otherwise the library chooses
workspace_limit bytes of device memory that the kernel may use besides
stream          the stream to run on, if not the arrays' own

Raises tessera.Error, and nothing was enqueued then, if arrays do not fit together or cannot be multiplied.)";

nb::object gemm(nb::handle a, nb::handle b, nb::handle out, nb::handle bias, nb::handle activation, nb::handle c,
                nb::handle alpha, nb::handle beta, nb::handle scale_a, nb::handle scale_b, nb::handle out_dtype,
                nb::handle gating, nb::handle pre_activation, nb::handle scale_d, nb::handle amax_d, nb::handle tf32,
                nb::handle fp8_accumulation, nb::handle f16_accumulation, nb::handle variant,
                nb::handle workspace_limit, nb::handle stream)
{
    Arguments arguments;
    arguments.a = a;
    arguments.b = b;
    arguments.out = out;
    arguments.bias = bias;
    arguments.activation = activation;
    arguments.c = c;
    arguments.alpha = alpha;
    arguments.beta = beta;
    arguments.scale_a = scale_a;
    arguments.scale_b = scale_b;
    arguments.out_dtype = out_dtype;
    arguments.gating = gating;
    arguments.pre_activation = pre_activation;
    arguments.scale_d = scale_d;
    arguments.amax_d = amax_d;
    arguments.tf32 = tf32;
    arguments.fp8_accumulation = fp8_accumulation;
    arguments.f16_accumulation = f16_accumulation;
    arguments.variant = variant;
    arguments.workspace_limit = workspace_limit;
    arguments.stream = stream;
    return Product(arguments, Product::Use::launch).launch(nullptr, "tessera.gemm");
}

/// gemm for tessera.torch: operands may be transposed, arguments have positions, and gradients are the caller's business.
nb::object layer(nb::handle a, nb::handle b, bool transpose_a, bool transpose_b, nb::handle bias, nb::handle activation,
                 nb::handle gating, nb::handle pre_activation)
{
    Arguments arguments;
    arguments.a = a;
    arguments.b = b;
    arguments.transpose_a = transpose_a;
    arguments.transpose_b = transpose_b;
    arguments.allow_gradients = true;
    arguments.bias = bias;
    arguments.activation = activation;
    arguments.gating = gating;
    arguments.pre_activation = pre_activation;
    return Product(arguments, Product::Use::launch).launch(nullptr, "tessera.torch");
}

/// 10 * major + minor of a device by number, pair or name; 0 for the current one.
int capability_of(nb::handle device)
{
    struct Name {
        const char* name;
        int capability;
    };
    constexpr std::array names{Name{"t4", 75},    Name{"a100", 80},     Name{"a10", 86},   Name{"l40s", 89},
                               Name{"h100", 90},  Name{"h200", 90},     Name{"b200", 100}, Name{"b300", 103},
                               Name{"thor", 110}, Name{"rtx5090", 120}, Name{"gb10", 121}};
    if (device.is_none()) {
        return 0;
    }
    if (nb::isinstance<nb::tuple>(device)) {
        return 10 * nb::cast<int>(device[0]) + nb::cast<int>(device[1]);
    }
    const auto text = nb::cast<std::string>(nb::str(device));
    std::string all;
    for (const Name& known : names) {
        if (text == known.name) {
            return known.capability;
        }
        all += (all.empty() ? "" : ", ") + std::string(known.name);
    }
    raise("invalid_argument", "'" + text + "' is no device", all + ", or a compute capability such as (9, 0)");
}

/// Calls a function that hands out a text as snprintf does.
template <class Explain>
std::string explained(const Explain& explain)
{
    std::size_t length = 0;
    check(explain(nullptr, 0, &length), "tessera.explain");
    std::string text(length + 1, '\0');
    check(explain(text.data(), text.size(), &length), "tessera.explain");
    text.resize(length);
    return text;
}

std::string explain(nb::handle a, nb::handle b, nb::handle device, nb::kwargs epilogue)
{
    Arguments arguments;
    arguments.a = a;
    arguments.b = b;
    nb::object dtype = nb::none();
    if (epilogue.contains("dtype")) {  // of shapes
        dtype = nb::object(epilogue["dtype"]);
        nb::del(epilogue["dtype"]);
    }
    arguments.take(epilogue, "explain");
    if (arguments.out_dtype.is_none()) {
        arguments.out_dtype = dtype;
    }
    const Product product(arguments, Product::Use::description);
    return explained([&](char* text, std::size_t capacity, std::size_t* length) {
        return tessera_explain(capability_of(device), &product.a(), &product.b(), &product.d(), product.epilogue(),
                               product.options().variant, text, capacity, length);
    });
}

nb::object tune(nb::handle a, nb::handle b, double time_limit, nb::kwargs epilogue)
{
    Arguments arguments;
    arguments.a = a;
    arguments.b = b;
    arguments.take(epilogue, "tune");
    const Product product(arguments, Product::Use::description);
    tessera_tuning_options options{};
    options.size = sizeof(options);
    options.time_limit_seconds = time_limit;
    tessera_tuning_result found{};
    found.size = sizeof(found);
    tessera_status status = TESSERA_SUCCESS;
    {
        const nb::gil_scoped_release released;
        status = tessera_tune(product.device(), &product.a(), &product.b(), &product.d(), product.epilogue(), &options,
                              &found);
    }
    check(status, "tessera.tune");
    return nb::module_::import_("tessera._types")
        .attr("TuningResult")(tessera_variant_name(found.variant), found.configuration, found.seconds,
                              found.untuned_seconds, found.candidates);
}

/// A product whose kernel was chosen for operands like these.
class Plan {
public:
    Plan(nb::handle a, nb::handle b, const nb::kwargs& epilogue)
    {
        Arguments arguments;
        arguments.a = a;
        arguments.b = b;
        arguments.take(epilogue, "Plan");
        // Modes are the plan's; arrays come with each launch.
        for (const char* const mode :
             {"out_dtype", "alpha", "beta", "activation", "gating", "tf32", "fp8_accumulation", "f16_accumulation"}) {
            if (epilogue.contains(mode)) {
                modes_[mode] = epilogue[mode];
            }
        }
        const Product product(arguments, Product::Use::description);
        tessera_plan* plan = nullptr;
        check(tessera_plan_create(product.device(), &product.a(), &product.b(), &product.d(), product.epilogue(),
                                  &product.options(), &plan),
              "tessera.Plan");
        plan_.reset(plan);
    }

    nb::object launch(nb::handle a, nb::handle b, const nb::kwargs& given) const
    {
        Arguments arguments;
        arguments.a = a;
        arguments.b = b;
        arguments.take(given, "Plan");
        arguments.take(modes_, "Plan");
        return Product(arguments, Product::Use::launch).launch(plan_.get(), "tessera.Plan");
    }

    std::string explain() const
    {
        return explained([&](char* text, std::size_t capacity, std::size_t* length) {
            return tessera_plan_explain(plan_.get(), text, capacity, length);
        });
    }
    const char* variant() const { return tessera_variant_name(tessera_plan_variant(plan_.get())); }
    std::size_t workspace_bytes() const { return tessera_plan_workspace_bytes(plan_.get()); }

private:
    struct Destroy {
        void operator()(tessera_plan* plan) const { tessera_plan_destroy(plan); }
    };
    std::unique_ptr<tessera_plan, Destroy> plan_;
    nb::dict modes_;
};

void define_products(nb::module_& module)
{
    const auto none = nb::none();
    module.def("gemm", &gemm, nb::sig(gemm_signature), gemm_text, "a"_a, "b"_a, nb::kw_only(), "out"_a = none,
               "bias"_a = none, "activation"_a = none, "c"_a = none, "alpha"_a = none, "beta"_a = none,
               "scale_a"_a = none, "scale_b"_a = none, "out_dtype"_a = none, "gating"_a = none,
               "pre_activation"_a = none, "scale_d"_a = none, "amax_d"_a = none, "tf32"_a = none,
               "fp8_accumulation"_a = none, "f16_accumulation"_a = none, "variant"_a = none, "workspace_limit"_a = none,
               "stream"_a = none);
    module.def("_layer", &layer, "a"_a, "b"_a, "transpose_a"_a = false, "transpose_b"_a = false, "bias"_a = none,
               "activation"_a = none, "gating"_a = none, "pre_activation"_a = none);
    module.def("explain", &explain, nb::sig("def explain(a, b, device=None, **epilogue)"),
               "Says which kernel multiplies a and b and why, and why each other does not.\n\n"
               "a and b are arrays, or shapes: explain((4096, 512), (512, 1024), dtype=\"bf16\"). device is a name "
               "such as \"h200\" or\n"
               "\"b200\", or a compute capability such as (10, 0), of a device that need not be present. The other "
               "arguments are\n"
               "those of gemm.",
               "a"_a, "b"_a, "device"_a = none, "epilogue"_a);
    module.def("tune", &tune, nb::sig("def tune(a, b, *, time_limit=0.0, **epilogue)"),
               "Measures which kernel multiplies arrays like a and b fastest. gemm uses it from then on.\n\n"
               "Blocks for about a second, or about time_limit seconds. Nothing else should use the device meanwhile. "
               "a and b are\n"
               "not read. Returns a TuningResult.",
               "a"_a, "b"_a, nb::kw_only(), "time_limit"_a = 0.0, "epilogue"_a);
    module.def(
        "save_tuning", [](const std::string& path) { check(tessera_tuning_save(path.c_str()), "tessera.save_tuning"); },
        "path"_a, "Writes what tune has measured to a file, beside what is there.");
    module.def(
        "load_tuning",
        [](const std::string& path) {
            std::size_t used = 0;
            check(tessera_tuning_load(path.c_str(), &used), "tessera.load_tuning");
            return used;
        },
        "path"_a, "Reads what save_tuning wrote. Returns how many measured choices are used from now on.");
    nb::class_<Plan>(module, "Plan",
                     "A product whose kernel has been chosen, for arrays like a and b.\n\n"
                     "Plan(a, b, **epilogue) takes the arguments of gemm. plan(a, b, out=..., bias=..., c=...) "
                     "launches it with other\n"
                     "arrays of the same shapes, types and strides; activation, alpha and the like are the plan's.")
        .def(
            "__init__",
            [](Plan* self, nb::handle a, nb::handle b, const nb::kwargs& epilogue) { new (self) Plan(a, b, epilogue); },
            nb::sig("def __init__(self, a, b, **epilogue)"), "a"_a, "b"_a, "epilogue"_a)
        .def("__call__", &Plan::launch, nb::sig("def __call__(self, a, b, **arrays)"), "a"_a, "b"_a, "arrays"_a,
             "Launches the product.")
        .def("explain", &Plan::explain, "Says why this kernel was chosen, and why no other.")
        .def_prop_ro("variant", &Plan::variant, "The kernel family: \"hopper\", for example.")
        .def_prop_ro("workspace_bytes", &Plan::workspace_bytes,
                     "Bytes of device memory that a launch needs besides its arrays.");
}

}  // namespace
}  // namespace tessera::python

NB_MODULE(_core, module)
{
    using namespace tessera::python;
    define_array(module);
    define_host_values(module);
    define_products(module);
    define_programs(module);
    define_distributed(module);
    module.def(
        "device_count", [] { return tessera_device_count(); },
        "Returns the number of CUDA devices: 0 without a GPU or driver.");
    module.def(
        "compute_capability",
        [](int device) {
            int capability = 0;
            check(tessera_compute_capability(device, &capability), "tessera.compute_capability");
            return nb::make_tuple(capability / 10, capability % 10);
        },
        "device"_a = 0, "Returns a device's compute capability: (9, 0) for an H200.");
    module.def(
        "synchronize",
        [](nb::handle stream) {
            const tessera_stream waited = stream_of(stream);
            tessera_status status = TESSERA_SUCCESS;
            {
                const nb::gil_scoped_release released;
                status = tessera_synchronize(waited);
            }
            check(status, "tessera.synchronize");
        },
        "stream"_a = nb::none(),
        "Waits until all work on a stream is done: the legacy default stream if none is passed.");
    module.def("_release_workspaces", &release_workspaces);
    module.attr("version") = tessera_version_text();
}
