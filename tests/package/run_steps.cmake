# Shared by the package tests.
cmake_minimum_required(VERSION 3.25)

unset(ENV{DESTDIR})
if(COMPILER_LAUNCHER MATCHES "ccache" AND NOT DEFINED ENV{CCACHE_SLOPPINESS})
    set(ENV{CCACHE_SLOPPINESS} pch_defines,time_macros,include_file_mtime,include_file_ctime)
endif()

# run(command...): runs a command, stops with its output if it fails, and leaves its standard output in `output`.
function(run)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
    if(NOT result EQUAL 0)
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "${command}\nreturned ${result}:\n${output}${errors}")
    endif()
    set(output "${output}" PARENT_SCOPE)
endfunction()

# The CMake for foreign projects, unless it is set.
if(NOT CMAKE)
    set(CMAKE ${CMAKE_COMMAND})
endif()

# configure(<project> <definitions>...): into ${WORK}/build
function(configure project)
    set(options -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
        -DCMAKE_CUDA_COMPILER=${CUDA_COMPILER})
    if(COMPILER_LAUNCHER)
        list(APPEND options -DCMAKE_CXX_COMPILER_LAUNCHER=${COMPILER_LAUNCHER}
            -DCMAKE_CUDA_COMPILER_LAUNCHER=${COMPILER_LAUNCHER})
    endif()
    run(${CMAKE} -S ${project} -B ${WORK}/build --no-warn-unused-cli ${options} ${ARGN})
endfunction()

# configure_and_build(<project> <definitions>...)
function(configure_and_build project)
    configure(${project} ${ARGN})
    run(${CMAKE} --build ${WORK}/build --config ${BUILD_TYPE})
endfunction()

# run_built(<program> DEVICE <emulated device> PRINTS <text>...): runs it on that device, or without one if there is no
# emulated device here.
function(run_built program)
    cmake_parse_arguments(test "" "DEVICE" "PRINTS" ${ARGN})
    set(command ${WORK}/build/${program})
    if(test_DEVICE AND EMULATOR)
        set(command ${EMULATOR} --device ${test_DEVICE} --strict -- ${command})
        list(APPEND test_PRINTS "launched: all elements are right")
    endif()
    run(${command})
    foreach(expected IN LISTS test_PRINTS)
        string(FIND "${output}" "${expected}" position)
        if(position EQUAL -1)
            message(FATAL_ERROR "${program} should print\n  ${expected}\nand prints\n${output}")
        endif()
    endforeach()
endfunction()

set(explained "tessera ${TESSERA_VERSION}\n" "on B200 (compute capability 10.0" "runs: ")

# The program that was configured links one runtime: not the static one beside the SDK's.
function(check_cuda_runtime)
    file(GLOB build_files ${WORK}/build/build.ninja ${WORK}/build/CMakeFiles/*/link.txt)
    foreach(file IN LISTS build_files)
        file(STRINGS ${file} static REGEX "cudart_static")
        if(static)
            message(FATAL_ERROR "the program links the static CUDA runtime, too: ${static}")
        endif()
    endforeach()
endfunction()

# build_and_run_cuda_consumer(<definitions>...)
function(build_and_run_cuda_consumer)
    configure_and_build(${SOURCE}/cuda_consumer ${ARGN})
    check_cuda_runtime()
    run_built(consumer DEVICE t4 PRINTS ${explained})
    run_built(tma_consumer DEVICE h200)
endfunction()
