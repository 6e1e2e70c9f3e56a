/// The C ABI's tile programs that are compiled at run time.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "c/guard.hpp"
#include "program/program_state.hpp"
#include "tessera/tile/program.hpp"

struct tessera_program {
    tessera::tile::Program program;
};
struct tessera_kernel {
    tessera::tile::Kernel kernel;
};

namespace {

using namespace tessera;
using namespace tessera::tile::detail;
using c::guarded;
using c::nowhere;
using c::refuse;
using c::require_pointer;

tessera_argument_kind kind_of(MemberKind kind)
{
    switch (kind) {
        case MemberKind::value: return TESSERA_ARGUMENT_VALUE;
        case MemberKind::input: return TESSERA_ARGUMENT_INPUT;
        case MemberKind::output: return TESSERA_ARGUMENT_OUTPUT;
        case MemberKind::numbers: break;
    }
    return TESSERA_ARGUMENT_NUMBERS;
}

int device_of(int device, const void* data)
{
    return device >= 0 || data == nullptr ? device
                                          : tessera::detail::device_of_pointer(data, "tessera_kernel_launch", nowhere);
}

/// Reads a matrix in the storage order of its member.
AnyMemory memory_of(std::size_t index, const Member& member, const tessera_matrix& matrix)
{
    if (static_cast<int>(member.element) != matrix.type) {
        refuse("an array of the member's type", "argument {} has elements of type {}, and its member of type {}",
               index + 1, matrix.type, static_cast<int>(member.element));
    }
    if (matrix.rows < 0 || matrix.columns < 0 || matrix.batches < 0 || matrix.outer_batches < 0) {
        refuse("extents of 0 or more", "argument {} is {} x {} matrices of {} x {}", index + 1, matrix.outer_batches,
               matrix.batches, matrix.rows, matrix.columns);
    }
    const std::int64_t contiguous = member.row_major ? matrix.columns : matrix.rows;
    const std::int64_t lines = member.row_major ? matrix.rows : matrix.columns;
    const std::int64_t inside = member.row_major ? matrix.column_stride : matrix.row_stride;
    std::int64_t between = member.row_major ? matrix.row_stride : matrix.column_stride;
    const bool is_empty = contiguous == 0 || lines == 0;
    if (!is_empty && contiguous > 1 && inside != 1) {
        refuse("a contiguous copy, or a program for the other storage order",
               "argument {} has elements {} apart along its {}, and its member is {}", index + 1, inside,
               member.row_major ? "rows" : "columns", member.row_major ? "row-major" : "column-major");
    }
    between = lines > 1 ? between : std::max<std::int64_t>(contiguous, 1);
    if (!is_empty && lines > 1 && between < contiguous) {
        refuse("lines that do not overlap", "argument {} has lines of {} elements that are {} apart", index + 1,
               contiguous, between);
    }
    const bool one_level = matrix.outer_batches == 1 || matrix.outer_stride == matrix.batches * matrix.batch_stride;
    if (!one_level) {
        refuse("one launch for each group", "argument {} has groups of batches at a distance of their own", index + 1);
    }
    const std::int64_t batches = matrix.batches * matrix.outer_batches;
    const std::int64_t batch_stride = batches == 1          ? 0
                                      : matrix.batches == 1 ? matrix.outer_stride
                                                            : matrix.batch_stride;
    const auto bytes = static_cast<std::uint64_t>(size_of(member.element));
    return {.data = static_cast<const std::byte*>(matrix.data),
            .rows = matrix.rows,
            .columns = matrix.columns,
            .leading_dimension = between,
            .batches = batches,
            .batch_stride = batch_stride,
            .device = is_empty ? -1 : device_of(matrix.device, matrix.data),
            .in_vectors = begin_at_vectors(matrix.data, static_cast<std::uint64_t>(between) * bytes,
                                           static_cast<std::uint64_t>(batch_stride) * bytes, lines <= 1)};
}

ProgramArgument argument_of(std::size_t index, const Member& member, const tessera_argument& given)
{
    ProgramArgument argument;
    argument.member = member;
    switch (member.kind) {
        case MemberKind::input:
        case MemberKind::output:
            if (given.matrix == nullptr) {
                refuse("its matrix", "argument {} is a matrix, and .matrix is NULL", index + 1);
            }
            argument.member.kind = MemberKind::input;
            argument.memory = memory_of(index, member, *given.matrix);
            break;
        case MemberKind::numbers:
            argument.value = given.data;
            argument.count = given.count;
            argument.device = device_of(given.device, given.data);
            break;
        case MemberKind::value:
            if (given.data == nullptr) {
                refuse("its address", "argument {} is a value, and .data is NULL", index + 1);
            }
            argument.value = given.data;
            break;
    }
    return argument;
}

}  // namespace

tessera_status tessera_program_create(const char* source, const char* name, const char* const* definitions,
                                      size_t definition_count, tessera_program** program)
{
    return guarded("tessera_program_create", [&] {
        require_pointer(source, "source");
        require_pointer(program, "program");
        tile::ProgramOptions options;
        if (name != nullptr) {
            options.name = name;
        }
        for (std::size_t i = 0; i < definition_count; ++i) {
            require_pointer(definitions[i], "a definition");
            options.definitions.emplace_back(definitions[i]);
        }
        *program = new tessera_program{tile::Program::from_source(source, std::move(options))};
    });
}

void tessera_program_destroy(tessera_program* program) { delete program; }

tessera_status tessera_program_compile(const tessera_program* program, const char* type, int capability, char* text,
                                       size_t capacity, size_t* length)
{
    return guarded("tessera_program_compile", [&] {
        require_pointer(program, "program");
        require_pointer(type, "type");
        const std::string ptx = program->program.compile(type, {capability / 10, capability % 10}, nowhere).ptx;
        if (length != nullptr) {
            *length = ptx.size();
        }
        if (capacity > 0) {
            require_pointer(text, "text");
            const std::size_t count = std::min(ptx.size(), capacity - 1);
            std::memcpy(text, ptx.data(), count);
            text[count] = '\0';
        }
    });
}

tessera_status tessera_program_kernel(const tessera_program* program, const char* type, tessera_kernel** kernel)
{
    return guarded("tessera_program_kernel", [&] {
        require_pointer(program, "program");
        require_pointer(type, "type");
        require_pointer(kernel, "kernel");
        *kernel = new tessera_kernel{program->program.kernel(type, nowhere)};
    });
}

void tessera_kernel_destroy(tessera_kernel* kernel) { delete kernel; }

size_t tessera_kernel_member_count(const tessera_kernel* kernel)
{
    return kernel == nullptr ? 0 : KernelAccess::members(kernel->kernel).count;
}

tessera_status tessera_kernel_member(const tessera_kernel* kernel, size_t index, tessera_member* member)
{
    return guarded("tessera_kernel_member", [&] {
        require_pointer(kernel, "kernel");
        require_pointer(member, "member");
        const ProgramMembers& members = KernelAccess::members(kernel->kernel);
        if (index >= members.count) {
            refuse("from 0 on", "member {} is asked for, and {} has {}", index, kernel->kernel.type(), members.count);
        }
        const Member& found = members.of[index];
        *member = {.kind = kind_of(found.kind),
                   .type = static_cast<tessera_element_type>(found.element),
                   .row_major = found.row_major ? 1 : 0,
                   .rows = found.rows,
                   .columns = found.columns,
                   .number = static_cast<tessera_number_kind>(found.number),
                   .bytes = found.kind == MemberKind::numbers ? found.number_bytes : found.bytes};
    });
}

tessera_status tessera_kernel_launch(const tessera_kernel* kernel, tessera_stream stream,
                                     const tessera_argument* arguments, size_t count)
{
    return guarded("tessera_kernel_launch", [&] {
        require_pointer(kernel, "kernel");
        const ProgramMembers& members = KernelAccess::members(kernel->kernel);
        if (count != members.count) {
            refuse("one for each member, in their order", "{} has {} members, and the launch {} arguments",
                   kernel->kernel.type(), members.count, count);
        }
        require_pointer(arguments, "arguments");
        std::vector<ProgramArgument> all;
        for (std::size_t i = 0; i < count; ++i) {
            all.push_back(argument_of(i, members.of[i], arguments[i]));
        }
        // A default stream is that of the kernel's device.
        const bool is_default = stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
        const StreamRef on =
            is_default ? StreamRef(tessera::detail::known_device, stream, KernelAccess::device(kernel->kernel), nullptr)
                       : StreamRef(stream);
        KernelAccess::launch(kernel->kernel, tile::LaunchOn(on, nowhere), all.data(), all.size());
    });
}
