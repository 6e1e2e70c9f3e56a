#include "distributed.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "operand.hpp"
#include "tessera_distributed.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tessera::python {
namespace {

/// Reads a text of the library that is handed out as snprintf does.
template <class Handout>
std::string text_of(const Handout& handout, const char* function)
{
    std::size_t length = 0;
    check(handout(nullptr, 0, &length), function);
    std::string text(length + 1, '\0');
    check(handout(text.data(), text.size(), nullptr), function);
    text.resize(length);
    return text;
}

/// The grid of ranks that a matrix by blocks is divided among.
struct Grid {
    std::int32_t rows = 0;
    std::int32_t columns = 0;
    tessera_grid_order order = TESSERA_ALONG_ROWS;

    static Grid of(const std::vector<std::int32_t>& extents, const std::string& along)
    {
        if (extents.size() != 2 || extents[0] < 1 || extents[1] < 1) {
            raise("invalid_argument", "a grid of ranks has rows and columns", "grid=(2, 2)");
        }
        if (along != "rows" && along != "columns") {
            raise("invalid_argument", "ranks are not counted along '" + along + "'", "rows or columns");
        }
        return {extents[0], extents[1], along == "rows" ? TESSERA_ALONG_ROWS : TESSERA_ALONG_COLUMNS};
    }
    /// With rows and columns exchanged: that of B and D, if this is A's.
    Grid crosswise() const
    {
        return {columns, rows, order == TESSERA_ALONG_ROWS ? TESSERA_ALONG_COLUMNS : TESSERA_ALONG_ROWS};
    }
};
/// The library's handle, alive as long as the communicator or a product of it is.
struct Handle {
    explicit Handle(tessera_communicator* owned) : communicator(owned) {}
    ~Handle()
    {
        const nb::gil_scoped_release released;  // it may wait for other ranks, which may be threads of Python
        tessera_communicator_destroy(communicator);
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    tessera_communicator* communicator;
};

class Communicator {
public:
    explicit Communicator(tessera_communicator* owned) : handle_(std::make_shared<Handle>(owned)) {}

    static Communicator from_environment(double timeout, int max_ctas, bool copy_engines)
    {
        const tessera_communicator_options options = options_of(timeout, max_ctas, copy_engines);
        tessera_communicator* made = nullptr;
        tessera_status status = TESSERA_SUCCESS;
        {
            const nb::gil_scoped_release released;
            status = tessera_communicator_from_environment(&options, &made);
        }
        check(status, "tessera.distributed.Communicator.from_environment");
        return Communicator(made);
    }
    static Communicator from_broadcast(int rank, int size, int device, nb::callable broadcast, double timeout,
                                       int max_ctas, bool copy_engines)
    {
        const tessera_communicator_options options = options_of(timeout, max_ctas, copy_engines);
        struct Call {
            nb::callable function;
            bool is_rank_0;
            std::unique_ptr<nb::python_error> raised;
        } call{std::move(broadcast), rank == 0, nullptr};
        const auto call_python = [](void* context, char* text, std::size_t bytes) {
            const nb::gil_scoped_acquire acquired;
            auto& called = *static_cast<Call*>(context);
            try {
                const nb::object given = called.is_rank_0 ? nb::object(nb::str(text)) : nb::none();
                const std::string answer = nb::cast<std::string>(called.function(given));
                text[answer.copy(text, bytes - 1)] = '\0';
                return 0;
            } catch (nb::python_error& error) {
                called.raised = std::make_unique<nb::python_error>(std::move(error));
            } catch (const std::exception&) {  // the answer is no text
            }
            return 1;
        };
        tessera_communicator* made = nullptr;
        tessera_status status = TESSERA_SUCCESS;
        {
            const nb::gil_scoped_release released;
            status = tessera_communicator_from_broadcast(rank, size, device, call_python, &call, &options, &made);
        }
        if (call.raised != nullptr) {
            throw std::move(*call.raised);
        }
        check(status, "tessera.distributed.Communicator.from_broadcast");
        return Communicator(made);
    }
    static Communicator borrow(std::uintptr_t nccl, double timeout, int max_ctas)
    {
        const tessera_communicator_options options = options_of(timeout, max_ctas, true);
        tessera_communicator* made = nullptr;
        check(tessera_communicator_borrow(reinterpret_cast<ncclComm*>(nccl), &options, &made),
              "tessera.distributed.Communicator.borrow");
        return Communicator(made);
    }
    static std::vector<Communicator> of_devices(const std::vector<std::int32_t>& devices, double timeout, int max_ctas,
                                                bool copy_engines)
    {
        const tessera_communicator_options options = options_of(timeout, max_ctas, copy_engines);
        std::vector<tessera_communicator*> made(devices.size());
        tessera_status status = TESSERA_SUCCESS;
        {
            const nb::gil_scoped_release released;
            status = tessera_communicator_of_devices(devices.data(), static_cast<std::int32_t>(devices.size()),
                                                     &options, made.data());
        }
        check(status, "tessera.distributed.Communicator.of_devices");
        std::vector<Communicator> communicators;
        for (tessera_communicator* const each : made) {
            communicators.emplace_back(each);
        }
        return communicators;
    }

    int rank() const { return tessera_communicator_rank(get()); }
    int size() const { return tessera_communicator_size(get()); }
    int device() const { return tessera_communicator_device(get()); }
    std::uintptr_t nccl() const { return reinterpret_cast<std::uintptr_t>(tessera_communicator_nccl(get())); }
    nb::tuple share(std::int64_t extent) const
    {
        std::int64_t begin = 0;
        std::int64_t count = 0;
        check(tessera_share_of(extent, size(), rank(), &begin, &count), "tessera.distributed.Communicator.share");
        return nb::make_tuple(begin, count);
    }
    nb::tuple block(std::int64_t rows, std::int64_t columns, const std::vector<std::int32_t>& grid,
                    const std::string& along) const
    {
        const Grid of = Grid::of(grid, along);
        if (std::int64_t{of.rows} * of.columns != size()) {
            raise("invalid_argument",
                  "a grid of " + std::to_string(of.rows) + " x " + std::to_string(of.columns) +
                      " has other places than the " + std::to_string(size()) + " ranks",
                  "a grid with as many places as ranks");
        }
        const bool along_rows = of.order == TESSERA_ALONG_ROWS;
        const auto part = [](std::int64_t extent, std::int32_t parts, int index) {
            std::int64_t begin = 0;
            std::int64_t count = 0;
            check(tessera_share_of(extent, parts, index, &begin, &count), "tessera.distributed.Communicator.block");
            return nb::make_tuple(begin, count);
        };
        return nb::make_tuple(part(rows, of.rows, along_rows ? rank() / of.columns : rank() % of.rows),
                              part(columns, of.columns, along_rows ? rank() % of.columns : rank() / of.rows));
    }
    void synchronize(nb::handle stream) const
    {
        const tessera_stream waited = stream_of(stream);
        tessera_communicator* const used = get();
        tessera_status status = TESSERA_SUCCESS;
        {
            const nb::gil_scoped_release released;
            status = tessera_communicator_synchronize(used, waited);
        }
        check(status, "tessera.distributed.Communicator.synchronize");
    }
    void abort(const std::string& reason) const { tessera_communicator_abort(get(), reason.c_str()); }
    void close() { handle_.reset(); }
    std::string describe() const
    {
        return text_of(
            [this](char* text, std::size_t capacity, std::size_t* length) {
                return tessera_communicator_describe(get(), text, capacity, length);
            },
            "tessera.distributed.Communicator.describe");
    }

    /// Raises if it was closed.
    tessera_communicator* get() const
    {
        if (handle_ == nullptr) {
            raise("empty_handle", "the communicator was closed", "use it before");
        }
        return handle_->communicator;
    }
    const std::shared_ptr<Handle>& handle() const { return handle_; }

private:
    static tessera_communicator_options options_of(double timeout, int max_ctas, bool copy_engines)
    {
        if (timeout <= 0 || max_ctas < 0) {
            raise("invalid_argument",
                  "a timeout of " + std::to_string(timeout) + " s and at most " + std::to_string(max_ctas) + " CTAs",
                  "a timeout above 0, and 0 or more CTAs");
        }
        tessera_communicator_options options{};
        options.size = sizeof(options);
        options.timeout_seconds = timeout;
        options.max_ctas = max_ctas;
        options.no_copy_engines = copy_engines ? 0 : 1;
        return options;
    }

    std::shared_ptr<Handle> handle_;
};

struct Kind {
    std::string_view name;
    tessera_sharding a, b, out;
};
constexpr std::array kinds{Kind{"all_gather", TESSERA_BY_ROWS, TESSERA_BY_COLUMNS, TESSERA_BY_COLUMNS},
                           Kind{"reduce_scatter", TESSERA_BY_COLUMNS, TESSERA_BY_ROWS, TESSERA_BY_ROWS},
                           Kind{"all_reduce", TESSERA_BY_COLUMNS, TESSERA_BY_ROWS, TESSERA_REPLICATED},
                           Kind{"blocks", TESSERA_BY_BLOCKS, TESSERA_BY_BLOCKS, TESSERA_BY_BLOCKS}};

constexpr std::array activations{"none", "relu", "gelu", "silu", "gelu_tanh", "sigmoid", "tanh"};

const Kind& kind_of(const std::string& name)
{
    for (const Kind& kind : kinds) {
        if (kind.name == name) {
            return kind;
        }
    }
    raise("invalid_argument", "'" + name + "' is no kind of product",
          "all_gather, reduce_scatter, all_reduce or blocks");
}

std::int32_t activation_of(const std::string& name)
{
    for (std::size_t i = 0; i < activations.size(); ++i) {
        if (name == activations[i]) {
            return static_cast<std::int32_t>(i);
        }
    }
    raise("invalid_argument", "'" + name + "' is no activation", "none, relu, gelu, silu, gelu_tanh, sigmoid or tanh");
}

tessera_matrix matrix_of(const Operand& operand)
{
    if (operand.ndim != 2) {
        raise("shape_mismatch",
              std::string(operand.name) + " is " + shape_text(operand.ndim, operand.shape.data()) + ": it is a matrix",
              "two dimensions");
    }
    return {operand.data,
            operand.type,
            operand.device,
            operand.shape[0],
            operand.shape[1],
            operand.strides[0],
            operand.strides[1],
            1,
            0,
            1,
            0};
}

class ShardedGemm {
public:
    ShardedGemm(const Communicator& communicator, nb::handle a, nb::handle b, nb::handle out,
                const std::array<std::int64_t, 3>& shape, const std::string& kind, nb::handle bias,
                const std::string& activation, float alpha, int chunks, nb::handle stream,
                const std::vector<std::int32_t>& grid, const std::string& along)
        : owner_(communicator.handle()),
          arrays_{nb::borrow(a), nb::borrow(b), nb::borrow(out), nb::borrow(bias)},
          stream_(nb::borrow(stream))
    {
        const Kind& wanted = kind_of(kind);
        const auto [m, n, k] = shape;
        const bool by_blocks = wanted.a == TESSERA_BY_BLOCKS;
        if (by_blocks == grid.empty()) {
            raise("invalid_argument",
                  by_blocks ? "a product by blocks needs a grid of ranks" : "'" + kind + "' has no grid of ranks",
                  by_blocks ? "grid=(2, 2)" : "kind='blocks'");
        }
        const Grid of_a = by_blocks ? Grid::of(grid, along) : Grid{};
        const Grid others = of_a.crosswise();
        Reader reader(stream, a);
        std::array<Operand, 4> operands{reader.read("A", a), reader.read("B", b), reader.read("D", out), Operand{}};
        const tessera_sharded_matrix sharded_a{matrix_of(operands[0]), m,         k, wanted.a, of_a.rows,
                                               of_a.columns,           of_a.order};
        const tessera_sharded_matrix sharded_b{matrix_of(operands[1]), k,           n, wanted.b, others.rows,
                                               others.columns,         others.order};
        const tessera_sharded_matrix sharded_out{matrix_of(operands[2]), m,           n, wanted.out, others.rows,
                                                 others.columns,         others.order};
        tessera_epilogue epilogue{};
        epilogue.size = sizeof(epilogue);
        epilogue.alpha = &alpha;
        epilogue.activation = activation_of(activation);
        if (!bias.is_none()) {
            operands[3] = reader.read("the bias", bias);
            const Operand& vector = operands[3];
            if (vector.ndim != 1 || (vector.strides[0] != 1 && vector.shape[0] > 1)) {
                raise("shape_mismatch",
                      "the bias is " + shape_text(vector.ndim, vector.shape.data()) + ": it is a vector",
                      "one dimension, without gaps");
            }
            epilogue.bias = {vector.data, vector.type, vector.device, vector.shape[0]};
        }
        for (Operand& operand : operands) {
            exported_.push_back(std::move(operand.owner));
        }
        tessera_communicator* const used = communicator.get();
        tessera_sharded_plan* made = nullptr;
        tessera_status status = TESSERA_SUCCESS;
        {
            const nb::gil_scoped_release released;
            status = tessera_sharded_plan_create(used, &sharded_a, &sharded_b, &sharded_out, &epilogue, chunks, &made);
        }
        check(status, "tessera.distributed.ShardedGemm");
        plan_.reset(made);
        reader.finish();
    }

    nb::object launch(nb::handle stream)
    {
        Reader reader(stream.is_none() ? nb::handle(stream_) : stream, arrays_[0]);
        for (std::size_t i = 0; i < 3; ++i) {
            const Operand read = reader.read(names[i], arrays_[i]);  // orders the streams
            static_cast<void>(read);
        }
        const tessera_stream on = reader.stream();
        tessera_status status = TESSERA_SUCCESS;
        {
            const nb::gil_scoped_release released;
            status = tessera_sharded_plan_launch(plan_.get(), on);
        }
        check(status, "tessera.distributed.ShardedGemm");
        reader.finish();
        return arrays_[2];
    }
    int chunks() const { return tessera_sharded_plan_chunks(plan_.get()); }
    std::string explain() const
    {
        return text_of(
            [this](char* text, std::size_t capacity, std::size_t* length) {
                return tessera_sharded_plan_explain(plan_.get(), text, capacity, length);
            },
            "tessera.distributed.ShardedGemm.explain");
    }

private:
    static constexpr std::array names{"A", "B", "D"};
    struct Destroy {
        void operator()(tessera_sharded_plan* plan) const
        {
            const nb::gil_scoped_release released;  // it may wait for the device
            tessera_sharded_plan_destroy(plan);
        }
    };

    std::shared_ptr<Handle> owner_;
    std::array<nb::object, 4> arrays_;  // a, b, out, bias
    nb::object stream_;
    std::vector<nb::object> exported_;
    std::unique_ptr<tessera_sharded_plan, Destroy> plan_;
};

}  // namespace

void define_distributed(nb::module_& module)
{
    nb::class_<Communicator>(module, "_Communicator")
        .def_static("from_environment", &Communicator::from_environment, "timeout"_a, "max_ctas"_a, "copy_engines"_a)
        .def_static("from_broadcast", &Communicator::from_broadcast, "rank"_a, "size"_a, "device"_a, "broadcast"_a,
                    "timeout"_a, "max_ctas"_a, "copy_engines"_a)
        .def_static("borrow", &Communicator::borrow, "nccl"_a, "timeout"_a, "max_ctas"_a)
        .def_static("of_devices", &Communicator::of_devices, "devices"_a, "timeout"_a, "max_ctas"_a, "copy_engines"_a)
        .def_prop_ro("rank", &Communicator::rank)
        .def_prop_ro("size", &Communicator::size)
        .def_prop_ro("device", &Communicator::device)
        .def_prop_ro("nccl", &Communicator::nccl)
        .def("share", &Communicator::share, "extent"_a)
        .def("block", &Communicator::block, "rows"_a, "columns"_a, "grid"_a, "along"_a)
        .def("synchronize", &Communicator::synchronize, "stream"_a = nb::none())
        .def("abort", &Communicator::abort, "reason"_a)
        .def("close", &Communicator::close)
        .def("describe", &Communicator::describe);
    nb::class_<ShardedGemm>(module, "_ShardedGemm")
        .def(
            "__init__",
            [](ShardedGemm* self, const Communicator& communicator, nb::handle a, nb::handle b, nb::handle out,
               const std::vector<std::int64_t>& shape, const std::string& kind, nb::handle bias,
               const std::string& activation, float alpha, int chunks, nb::handle stream,
               const std::vector<std::int32_t>& grid, const std::string& along) {
                if (shape.size() != 3) {
                    raise("invalid_argument", "the shape has " + std::to_string(shape.size()) + " extents",
                          "(m, n, k)");
                }
                new (self) ShardedGemm(communicator, a, b, out, {shape[0], shape[1], shape[2]}, kind, bias, activation,
                                       alpha, chunks, stream, grid, along);
            },
            "communicator"_a, "a"_a, "b"_a, "out"_a, "shape"_a, "kind"_a, "bias"_a.none(), "activation"_a, "alpha"_a,
            "chunks"_a, "stream"_a.none(), "grid"_a, "along"_a)
        .def("launch", &ShardedGemm::launch, "stream"_a = nb::none())
        .def_prop_ro("chunks", &ShardedGemm::chunks)
        .def("explain", &ShardedGemm::explain);
}

}  // namespace tessera::python
