#pragma once

/// @file
/// @ingroup tile_run_time
/// @brief `Program` and `Kernel`: tile programs that are compiled while the application runs, by NVRTC. For any C++20 compiler.

#include "tessera/detail/language.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/device_span.hpp"
#include "tessera/element.hpp"
#include "tessera/matrix_view.hpp"
#include "tessera/stream.hpp"
#include "tessera/tile/launch_report.hpp"
#include "tessera/tile/matrix.hpp"
#include "tessera/tile/program_members.hpp"
#include "tessera/tile/view_arguments.hpp"

namespace tessera::tile {

namespace detail {

struct LoadedProgram;
struct ProgramState;
struct KernelAccess;

/// An argument of a launch, for a member of the program.
struct ProgramArgument {
    Member member{};     // what the argument is: kind, element, order, number, bytes
    AnyMemory memory{};  // of a matrix
    bool is_const = false;
    const void* value = nullptr;  // of a value; of numbers, the elements
    std::size_t count = 0;        // of numbers
    int device = -1;              // of numbers
};

template <class T, class Order>
ProgramArgument matrix_argument(const Memory<const std::remove_const_t<T>, Order>& memory)
{
    using Element = std::remove_const_t<T>;
    return {.member = {.element = element_traits<Element>::type, .row_major = std::is_same_v<Order, RowMajor>},
            .memory = untyped(memory),
            .is_const = std::is_const_v<T>};
}

/// How a type is passed. Any other is a value.
template <class T>
struct ProgramArgumentOf {
    static_assert(std::is_trivially_copyable_v<T>,
                  "tessera: an argument of a tile program is a MatrixView, a BatchView, a DeviceSpan of numbers or a "
                  "plain value: buffer.matrix(rows, columns) is a view");
    static ProgramArgument from(const T& value, const std::source_location&)
    {
        return {.member = {.kind = MemberKind::value,
                           .number = value_kind_of<T>,
                           .bytes = sizeof(T),
                           .alignment = alignof(T)},
                .value = &value};
    }
};
template <class T, class Order>
struct ProgramArgumentOf<MatrixView<T, Order>> {
    static ProgramArgument from(const MatrixView<T, Order>& matrix, const std::source_location&)
    {
        ProgramArgument argument = matrix_argument<T, Order>(memory_of<const std::remove_const_t<T>>(matrix));
        argument.member.kind = MemberKind::input;
        return argument;
    }
};
template <class T, class Order>
struct ProgramArgumentOf<BatchView<T, Order>> {
    static ProgramArgument from(const BatchView<T, Order>& matrices, const std::source_location& caller)
    {
        ProgramArgument argument = matrix_argument<T, Order>(memory_of<const std::remove_const_t<T>>(matrices, caller));
        argument.member.kind = MemberKind::input;
        return argument;
    }
};
template <class T>
struct ProgramArgumentOf<DeviceSpan<T>> {
    static ProgramArgument from(const DeviceSpan<T>& numbers, const std::source_location&)
    {
        using Number = std::remove_const_t<T>;
        return {
            .member = {.kind = MemberKind::numbers, .number = value_kind_of<Number>, .number_bytes = sizeof(Number)},
            .value = numbers.data(),
            .count = numbers.size(),
            .device = numbers.device()};
    }
};

}  // namespace detail

/// What a program is compiled for.
struct ComputeCapability {
    int major = 0;  ///< 9 for an H200
    int minor = 0;  ///< 0 for an H200
    /// Compares for equality.
    friend bool operator==(const ComputeCapability&, const ComputeCapability&) = default;
};

/// How a program is compiled, and where the result is kept.
struct ProgramOptions {
    /// The file that errors of the compiler name.
    std::string name = "program";
    /// Macros, as "NAME" or "NAME=value".
    std::vector<std::string> definitions{};
    /// Folders of headers of your own. Files that they include are not part of the cache's key.
    std::vector<std::string> include_folders{};
    /// Keeps line numbers in the machine code, for profilers and compute-sanitizer.
    bool line_numbers = false;
    /// Where compiled programs are kept. "" stands for $TESSERA_PROGRAM_CACHE, or else $XDG_CACHE_HOME/tessera, or else
    /// ~/.cache/tessera; "none" for nowhere.
    std::string cache_folder{};
};

/// A program's code for one compute capability.
struct CompiledProgram {
    std::string ptx;           ///< for the emulated device and later GPUs
    std::string machine_code;  ///< a cubin
    double seconds = 0;        ///< that the compiler needed, or reading it from the cache
    bool from_cache = false;   ///< from disk
    std::string warnings;      ///< the compiler's, and what was wrong with the cache
};

/// Where a program is launched, and by whom. Made of a stream.
struct LaunchOn {
    /// Takes a stream, and the caller's place for errors.
    template <class S>
        requires std::is_convertible_v<const S&, StreamRef>
    LaunchOn(const S& stream_, std::source_location caller_ = std::source_location::current())
        : stream(stream_), caller(caller_)
    {}
    StreamRef stream;             ///< where the kernel runs
    std::source_location caller;  ///< the place that errors name
};

/// A program of one type, compiled and ready on one device.
///
/// @par Thread safety
/// A value that shares its code with all copies: threads may launch at the same time.
class Kernel {
public:
    /// Launches the program: with one argument for each of its members, in their order. An input or output is given as a
    /// MatrixView or a BatchView, `Numbers` as a DeviceSpan, a value as one of its very type.
    ///
    /// @par Synchronization
    /// As `tile::launch`.
    ///
    /// @return  as `tile::launch`
    /// @throws Error  `invalid_argument` for arguments that do not fit the members, and as `tile::launch`
    template <class... Arguments>
    LaunchReport launch(LaunchOn on, const Arguments&... arguments) const
    {
        const std::array<detail::ProgramArgument, sizeof...(Arguments) + 1> all{
            detail::ProgramArgumentOf<Arguments>::from(arguments, on.caller)...};
        return launch_with(on, all.data(), sizeof...(Arguments));
    }

    /// Returns the code that the kernel was loaded from.
    const CompiledProgram& code() const noexcept;
    /// Returns the type, as it was asked for.
    const std::string& type() const noexcept;

private:
    friend class Program;
    friend struct detail::KernelAccess;
    explicit Kernel(std::shared_ptr<const detail::LoadedProgram> program) : program_(std::move(program)) {}
    LaunchReport launch_with(const LaunchOn& on, const detail::ProgramArgument* arguments, std::size_t count) const;

    std::shared_ptr<const detail::LoadedProgram> program_;
};

/// The source of tile programs, compiled when they are needed.
///
/// @code{.cpp}
/// const auto program = tile::Program::from_source(R"(
///     #include <tessera/tile.cuh>
///     using namespace tessera;
///     template <class T>
///     struct Add {
///         tile::Input<T, 16, 128> x, y;
///         tile::Output<T, 16, 128> z;
///         float factor;
///         TESSERA_TILE void operator()(auto cta) const
///         {
///             for (auto at : z.tiles(cta)) {
///                 z.store(at, tile::convert<T>(x.load(at) + factor * y.load(at)));
///             }
///         }
///     };
/// )");
/// program.kernel("Add<float>").launch(stream, x, w, y, 0.5F);
/// @endcode
///
/// The library brings its own headers; those of the CUDA Toolkit must be installed, with NVRTC, which is loaded when it is
/// first used. $CUDA_PATH says where, if they are not found. The application needs neither nvcc nor a GPU to compile.
///
/// @par Compiled code
/// is kept in memory for as long as a copy of the program lives, and on disk: see `ProgramOptions::cache_folder`. Several
/// processes may use one folder at the same time. An entry that is damaged is ignored.
///
/// @par Thread safety
/// A value that shares its source and code with all copies. All functions may be called from several threads.
class Program {
public:
    /// Takes the text of a CUDA C++ source. Nothing is compiled yet.
    static Program from_source(std::string source, ProgramOptions options = {});
    /// Reads a source file. Its path is the name that errors give, unless the options have another; its folder is searched for
    /// headers.
    /// @throws Error  `invalid_argument` if it cannot be read
    static Program from_file(const std::string& path, ProgramOptions options = {},
                             std::source_location caller = std::source_location::current());

    /// Returns the program of a type, ready on the current device.
    /// @param type  a type of the source that is a tile program: "Add<bf16>"
    /// @throws Error  `compilation_failed` with the compiler's words, or if there is no NVRTC; `no_device`; and what
    ///                loading can throw
    Kernel kernel(std::string_view type, std::source_location caller = std::source_location::current()) const;

    /// Compiles a type for a GPU that need not be there.
    /// @throws Error  `compilation_failed`, `invalid_argument` for a compute capability that NVRTC does not know
    CompiledProgram compile(std::string_view type, ComputeCapability target,
                            std::source_location caller = std::source_location::current()) const;

private:
    explicit Program(std::shared_ptr<detail::ProgramState> state) : state_(std::move(state)) {}
    std::shared_ptr<detail::ProgramState> state_;
};

}  // namespace tessera::tile
