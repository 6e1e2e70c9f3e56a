#include "program.hpp"

#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "elements.hpp"
#include "errors.hpp"
#include "operand.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tessera::python {
namespace {

/// A value of a member's type, as it is passed.
struct Value {
    alignas(8) std::array<std::byte, 8> bytes{};
    template <class T>
    void set(T value)
    {
        static_assert(sizeof(T) <= sizeof(bytes));
        std::memcpy(bytes.data(), &value, sizeof(T));
    }
};

template <class Small, class Wide>
void set_checked(Value& value, nb::handle object, const std::string& name)
{
    Wide wide{};
    if (!nb::try_cast(object, wide) || static_cast<Wide>(static_cast<Small>(wide)) != wide) {
        raise("invalid_argument", name + " is " + nb::cast<std::string>(nb::repr(object)),
              "an integer of " + std::to_string(8 * sizeof(Small)) + " bits");
    }
    value.set(static_cast<Small>(wide));
}

Value value_of(const tessera_member& member, nb::handle object, const std::string& name)
{
    Value value;
    if (member.number == TESSERA_NUMBER_BOOL) {
        value.set(nb::cast<bool>(nb::bool_(nb::borrow(object))));
    } else if (member.number == TESSERA_NUMBER_FLOAT) {
        double number = 0;
        if (!nb::try_cast(object, number)) {
            raise("invalid_argument", name + " is " + nb::cast<std::string>(nb::repr(object)), "a number");
        }
        if (member.bytes == sizeof(float)) {
            value.set(static_cast<float>(number));
        } else {
            value.set(number);
        }
    } else if (member.number == TESSERA_NUMBER_SIGNED) {
        switch (member.bytes) {
            case 1: set_checked<std::int8_t, std::int64_t>(value, object, name); break;
            case 2: set_checked<std::int16_t, std::int64_t>(value, object, name); break;
            case 4: set_checked<std::int32_t, std::int64_t>(value, object, name); break;
            default: set_checked<std::int64_t, std::int64_t>(value, object, name); break;
        }
    } else if (member.number == TESSERA_NUMBER_UNSIGNED) {
        switch (member.bytes) {
            case 1: set_checked<std::uint8_t, std::uint64_t>(value, object, name); break;
            case 2: set_checked<std::uint16_t, std::uint64_t>(value, object, name); break;
            case 4: set_checked<std::uint32_t, std::uint64_t>(value, object, name); break;
            default: set_checked<std::uint64_t, std::uint64_t>(value, object, name); break;
        }
    } else {
        raise("invalid_argument", name + " is a structure of the program's",
              "members that are numbers: Python has no other values for a program");
    }
    return value;
}

/// An array as a matrix: the last two dimensions, or one of them for a vector, and up to two of batches.
tessera_matrix matrix_of(const tessera_member& member, const Operand& operand)
{
    if (operand.ndim > 4) {
        raise("invalid_argument",
              std::string(operand.name) + " has the shape " + shape_text(operand.ndim, operand.shape.data()),
              "a matrix, or a batch of matrices with one or two dimensions more");
    }
    // A vector is one row, or one column where the member's tiles have one.
    const bool is_column = operand.ndim == 1 && member.columns == 1 && member.rows != 1;
    std::array<std::int64_t, 4> shape{1, 1, 1, 1};
    std::array<std::int64_t, 4> strides{0, 0, 0, 0};
    for (int i = 0; i < operand.ndim; ++i) {
        const auto to = static_cast<std::size_t>(4 - operand.ndim + i - (is_column ? 1 : 0));
        shape[to] = operand.shape[static_cast<std::size_t>(i)];
        strides[to] = operand.strides[static_cast<std::size_t>(i)];
    }
    tessera_matrix matrix{};
    matrix.data = operand.data;
    matrix.type = operand.type;
    matrix.device = operand.device;
    matrix.outer_batches = shape[0];
    matrix.outer_stride = strides[0];
    matrix.batches = shape[1];
    matrix.batch_stride = strides[1];
    matrix.rows = shape[2];
    matrix.row_stride = strides[2];
    matrix.columns = shape[3];
    matrix.column_stride = strides[3];
    if (member.type == TESSERA_TF32 && matrix.type == TESSERA_F32) {
        matrix.type = TESSERA_TF32;
    }
    return matrix;
}

class Kernel {
public:
    explicit Kernel(tessera_kernel* kernel) : kernel_(kernel)
    {
        members_.resize(tessera_kernel_member_count(kernel));
        for (std::size_t i = 0; i < members_.size(); ++i) {
            check(tessera_kernel_member(kernel, i, &members_[i]), "tessera.Kernel");
        }
    }

    void launch(const nb::args& given, nb::handle stream) const
    {
        if (given.size() != members_.size()) {
            raise("invalid_argument",
                  "the program has " + std::to_string(members_.size()) + " members, and the launch " +
                      std::to_string(given.size()) + " arguments",
                  "one for each member, in their order");
        }
        nb::handle first;
        for (std::size_t i = 0; i < members_.size() && !first.is_valid(); ++i) {
            if (members_[i].kind != TESSERA_ARGUMENT_VALUE) {
                first = given[i];
            }
        }
        if (!first.is_valid()) {
            raise("invalid_argument", "the program has no arrays", "a program with an Output");
        }
        Reader reader(stream, first);
        std::vector<std::string> names(members_.size());
        std::vector<Operand> operands(members_.size());  // keep memory alive that was exported for this call
        std::vector<tessera_matrix> matrices(members_.size());
        std::vector<Value> values(members_.size());
        std::vector<tessera_argument> arguments(members_.size());
        for (std::size_t i = 0; i < members_.size(); ++i) {
            const tessera_member& member = members_[i];
            tessera_argument& argument = arguments[i];
            names[i] = "argument " + std::to_string(i + 1);
            argument.device = -1;
            if (member.kind == TESSERA_ARGUMENT_VALUE) {
                values[i] = value_of(member, given[i], names[i]);
                argument.data = values[i].bytes.data();
            } else if (member.kind == TESSERA_ARGUMENT_NUMBERS) {
                read_numbers(reader, member, given[i], names[i].c_str(), operands[i], argument);
            } else {
                operands[i] = reader.read(names[i].c_str(), given[i]);
                if (member.kind == TESSERA_ARGUMENT_OUTPUT && !operands[i].writable) {
                    raise("invalid_argument", names[i] + " is read-only, and the program writes it",
                          "a writable array");
                }
                matrices[i] = matrix_of(member, operands[i]);
                argument.matrix = &matrices[i];
            }
        }
        check(tessera_kernel_launch(kernel_.get(), reader.stream(), arguments.data(), arguments.size()),
              "tessera.Kernel");
        reader.finish();
    }

private:
    static void read_numbers(Reader& reader, const tessera_member& member, nb::handle object, const char* name,
                             Operand& operand, tessera_argument& argument)
    {
        dlpack::DataType type{};
        operand = reader.read_of_any_type(name, object, type);
        const std::uint8_t code = member.number == TESSERA_NUMBER_FLOAT      ? 2
                                  : member.number == TESSERA_NUMBER_UNSIGNED ? 1
                                  : member.number == TESSERA_NUMBER_BOOL     ? 6
                                                                             : 0;
        if (type.code != code || type.bits != 8 * member.bytes || operand.ndim != 1 ||
            (operand.shape[0] > 1 && operand.strides[0] != 1)) {
            raise("invalid_argument",
                  std::string(name) + " has the shape " + shape_text(operand.ndim, operand.shape.data()) +
                      " and elements of DLPack type " + std::to_string(type.code) + " with " +
                      std::to_string(type.bits) + " bits",
                  "a contiguous vector of DLPack type " + std::to_string(code) + " with " +
                      std::to_string(8 * member.bytes) + " bits: the program's Numbers");
        }
        argument.data = operand.data;
        argument.count = static_cast<std::size_t>(operand.shape[0]);
        argument.device = operand.device;
    }

    struct Destroy {
        void operator()(tessera_kernel* kernel) const { tessera_kernel_destroy(kernel); }
    };
    std::unique_ptr<tessera_kernel, Destroy> kernel_;
    std::vector<tessera_member> members_;
};

class Program {
public:
    Program(const std::string& source, const std::string& name, const std::vector<std::string>& definitions)
    {
        std::vector<const char*> texts;
        for (const std::string& definition : definitions) {
            texts.push_back(definition.c_str());
        }
        tessera_program* program = nullptr;
        check(tessera_program_create(source.c_str(), name.c_str(), texts.data(), texts.size(), &program),
              "tessera.Program");
        program_.reset(program);
    }

    Kernel kernel(const std::string& type) const
    {
        tessera_kernel* kernel = nullptr;
        tessera_status status = TESSERA_SUCCESS;
        {
            const nb::gil_scoped_release released;  // compiling takes seconds
            status = tessera_program_kernel(program_.get(), type.c_str(), &kernel);
        }
        check(status, "tessera.Program");
        return Kernel(kernel);
    }

    std::string compile(const std::string& type, int major, int minor) const
    {
        std::size_t length = 0;
        tessera_status status = TESSERA_SUCCESS;
        std::string text;
        {
            const nb::gil_scoped_release released;
            status = tessera_program_compile(program_.get(), type.c_str(), 10 * major + minor, nullptr, 0, &length);
            if (status == TESSERA_SUCCESS) {
                text.resize(length + 1);
                status = tessera_program_compile(program_.get(), type.c_str(), 10 * major + minor, text.data(),
                                                 text.size(), &length);
            }
        }
        check(status, "tessera.Program");
        text.resize(length);
        return text;
    }

private:
    struct Destroy {
        void operator()(tessera_program* program) const { tessera_program_destroy(program); }
    };
    std::unique_ptr<tessera_program, Destroy> program_;
};

}  // namespace

void define_programs(nb::module_& module)
{
    nb::class_<Kernel>(module, "Kernel", "A tile program of one type, compiled for the current device.")
        .def("__call__", &Kernel::launch, nb::sig("def __call__(self, *arguments, stream=None)"), "arguments"_a,
             nb::kw_only(), "stream"_a = nb::none(),
             "Launches the program: with an array or a number for each of its members, in their order.\n\n"
             "Arrays are taken as gemm takes them; outputs are written in place. The call does not wait for the "
             "device.");
    nb::class_<Program>(module, "Program",
                        "The source of tile programs: kernels in CUDA C++ without threads or barriers, compiled when "
                        "they are needed.\n\n"
                        "    add = tessera.Program('''\n"
                        "        using namespace tessera;\n"
                        "        template <class T>\n"
                        "        struct Add {\n"
                        "            tile::Input<T, 16, 128> x, y;\n"
                        "            tile::Output<T, 16, 128> z;\n"
                        "            float factor;\n"
                        "            TESSERA_TILE void operator()(auto cta) const\n"
                        "            {\n"
                        "                for (auto at : z.tiles(cta)) {\n"
                        "                    z.store(at, tile::convert<T>(x.load(at) + factor * y.load(at)));\n"
                        "                }\n"
                        "            }\n"
                        "        };''')\n"
                        "    add.kernel('Add<float>')(x, y, z, 0.5)\n\n"
                        "name is what errors of the compiler call the source, definitions are macros such as "
                        "'STEP=10'. Compiled programs are "
                        "kept\n"
                        "on disk. The CUDA Toolkit must be installed, for its headers and NVRTC.")
        .def(nb::init<const std::string&, const std::string&, const std::vector<std::string>&>(), "source"_a,
             nb::kw_only(), "name"_a = "program", "definitions"_a = std::vector<std::string>())
        .def("kernel", &Program::kernel, "type"_a,
             "Returns the program of a type of the source, such as 'Add<float>', ready on the current device.")
        .def("compile", &Program::compile, "type"_a, "major"_a, "minor"_a,
             "Compiles a type for a compute capability, of a GPU that need not be there, and returns its PTX.");
}

}  // namespace tessera::python
