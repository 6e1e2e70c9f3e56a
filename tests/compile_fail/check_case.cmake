# Checks one case: cmake -DSETTINGS=<settings.cmake> -DSOURCE=<case> -P check_case.cmake
#
# The case is compiled without NEGATIVE, which must succeed without a warning, and with NEGATIVE defined, which must
# fail. The first error must contain, as plain text, what the case expects in a comment at the start of a line: either
#     // expect: "..."
# for any compiler, or, if the compiler chooses the words, one of each of
#     // expect g++: "..."
#     // expect clang++: "..."
# Device code is compiled for compute_80, or for what the case says in
#     // architecture: "..."

include(${CMAKE_CURRENT_LIST_DIR}/compiler_commands.cmake)

get_filename_component(name ${SOURCE} NAME_WE)
get_filename_component(extension ${SOURCE} EXT)
if(extension STREQUAL ".cu")
    set(compiler_name nvcc)
    set(warnings ${device_warnings})
else()
    set(warnings ${host_warnings})
    tessera_host_command(command ${cxx_compiler})
    if(cxx_compiler_id STREQUAL "GNU")
        set(compiler_name g++)
    else()
        set(compiler_name clang++)
    endif()
endif()

# Sets <variable> to the quoted text after <mark>, if the case has it.
function(find_expectation mark variable)
    file(READ ${SOURCE} text)
    string(FIND "${text}" "\n${mark} \"" begin)
    if(begin EQUAL -1)
        return()
    endif()
    string(LENGTH "\n${mark} \"" mark_length)
    math(EXPR begin "${begin} + ${mark_length}")
    string(SUBSTRING "${text}" ${begin} -1 rest)
    string(FIND "${rest}" "\"\n" length)
    string(SUBSTRING "${rest}" 0 ${length} expected)
    set(${variable} "${expected}" PARENT_SCOPE)
endfunction()

if(compiler_name STREQUAL "nvcc")
    find_expectation("// architecture:" architecture)
    tessera_device_command(command ${name} ${architecture})
endif()

find_expectation("// expect:" expected)
find_expectation("// expect ${compiler_name}:" expected)
if("${expected}" STREQUAL "")
    message(FATAL_ERROR "${SOURCE} has no expectation for ${compiler_name}")
endif()

execute_process(COMMAND ${command} ${warnings} ${SOURCE}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0)
    message(FATAL_ERROR "the positive twin does not compile:\n${output}")
endif()

# Without warnings: a warning treated as an error could be mistaken for the first error.
execute_process(COMMAND ${command} -w -DNEGATIVE ${SOURCE}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result EQUAL 0)
    message(FATAL_ERROR "the negative twin compiles, but must not")
endif()
string(REGEX MATCH "[^\n]*error[ :][^\n]*" first_error "${output}")
string(FIND "${first_error}" "${expected}" position)
if(position EQUAL -1)
    message(FATAL_ERROR "the first error is\n  ${first_error}\nbut should contain\n  ${expected}\nFull output:\n${output}")
endif()
