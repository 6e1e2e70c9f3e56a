# Shared by the scripts beside it: the compilers' command lines, and what a case says about itself.

cmake_minimum_required(VERSION 3.25)
include(${SETTINGS})

# Messages in plain ASCII and in English.
set(ENV{LC_ALL} C)

# tessera_include_flags(<variable>): the SDK's headers with warnings, all others as system headers.
function(tessera_include_flags variable)
    set(flags -I${sdk_include})
    foreach(directory IN LISTS include_directories)
        # Naming an implicit directory would reorder the standard library's headers.
        if(NOT directory STREQUAL sdk_include AND NOT directory IN_LIST implicit_directories)
            list(APPEND flags -isystem ${directory})
        endif()
    endforeach()
    set(${variable} ${flags} PARENT_SCOPE)
endfunction()

# tessera_case_says(<variable> <case> <mark>): the quoted text after <mark> at the start of a line of the case, if it has it.
function(tessera_case_says variable case mark)
    file(READ ${case} text)
    string(FIND "${text}" "\n${mark} \"" begin)
    if(begin EQUAL -1)
        return()
    endif()
    string(LENGTH "\n${mark} \"" mark_length)
    math(EXPR begin "${begin} + ${mark_length}")
    string(SUBSTRING "${text}" ${begin} -1 rest)
    string(FIND "${rest}" "\"\n" length)
    string(SUBSTRING "${rest}" 0 ${length} said)
    set(${variable} "${said}" PARENT_SCOPE)
endfunction()

# tessera_host_command(<variable> <compiler>), tessera_device_command(<variable> <name> [<architecture>]): command lines without the
# source and the warning flags. Both stop as soon as all errors are known; device code must be compiled to PTX for that.
function(tessera_host_command variable compiler)
    tessera_include_flags(flags)
    set(${variable} ${compiler} -std=c++20 -fsyntax-only ${flags} PARENT_SCOPE)
endfunction()

function(tessera_device_command variable name)
    set(architecture compute_80)
    if(ARGN)
        set(architecture ${ARGN})
    endif()
    tessera_include_flags(flags)
    set(${variable} ${cuda_compiler} -ccbin ${cxx_compiler} -std=c++20 -arch=${architecture} -ptx --Ofast-compile=max
        -o ${work_directory}/${name}.ptx ${flags} PARENT_SCOPE)
endfunction()

set(host_warnings -Wall -Wextra -Wconversion -Werror)
set(device_warnings -Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror)
