# How every target of this project is compiled.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
tessera_teach_cuda20()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# FindCUDAToolkit of CMake 3.25.1 (Debian 12) marks CUDA::nvToolsExt as deprecated where a project requires 3.25, and CUDA 13 has no such
# library. Newer releases look first.
set(required_cmake ${CMAKE_MINIMUM_REQUIRED_VERSION})
set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
find_package(CUDAToolkit 13.0 REQUIRED)
set(CMAKE_MINIMUM_REQUIRED_VERSION ${required_cmake})
message(STATUS "CUDA Toolkit ${CUDAToolkit_VERSION}, nvcc ${CMAKE_CUDA_COMPILER_VERSION}")
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13.1.1)
    # NVIDIA's release notes: fixed in 13.1.1; seen with CuTe GEMMs on GB202 (sm_120).
    message(STATUS "nvcc before 13.1.1 could miscompile kernels for sm_120: run the device tests there before relying on it")
endif()

# ccache must be told that it may keep precompiled headers. It needs a folder that it may write to: it is used only if it
# can compile something here.
if(TESSERA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    find_program(TESSERA_CCACHE_PROGRAM ccache DOC "ccache")
    mark_as_advanced(TESSERA_CCACHE_PROGRAM)
    if(TESSERA_CCACHE_PROGRAM)
        # A precompiled header records the text of each header that says #pragma once. So comments must count as well:
        # otherwise a changed comment brings back the old precompiled header, and the compiler sees that header twice.
        set(ccache ${CMAKE_COMMAND} -E env CCACHE_COMMENTS=1
            CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
            ${TESSERA_CCACHE_PROGRAM})
        set(probe ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/ccache_probe)
        file(WRITE ${probe}.cpp "int probe;\n")
        execute_process(COMMAND ${ccache} ${CMAKE_CXX_COMPILER} -c ${probe}.cpp -o ${probe}.o
            RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
        if(failed)
            message(STATUS "ccache is installed, but does not work here: it is not used")
        else()
            message(STATUS "Compiling through ccache: ${TESSERA_CCACHE_PROGRAM}")
            set(TESSERA_CCACHE_COMMAND ${ccache})
            set(CMAKE_CXX_COMPILER_LAUNCHER ${ccache})
            set(CMAKE_CUDA_COMPILER_LAUNCHER ${ccache})
        endif()
    endif()
endif()

# tessera_compile(target): warnings as this project wants them. Device code has no -Wconversion: its arithmetic on
# threadIdx and blockDim would drown in casts.
function(tessera_compile target)
    target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion>
        $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
        $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${TESSERA_LINEINFO}>>:-lineinfo>)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
        # False alarms of g++ 12 and 13 inside of std::string and of fmt 9's buffers, where they are inlined into our
        # code; which ones come depends on the processor that -march=native finds.
        target_compile_options(${target} PRIVATE
            $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict>)
    endif()
    if(TESSERA_WARNINGS_AS_ERRORS)
        target_compile_options(${target} PRIVATE
            $<$<COMPILE_LANGUAGE:CXX>:-Werror>
            $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Werror>)
    endif()
endfunction()
