# README.md's only piece of C++ is the marked part of examples/quickstart/main.cpp, without its indentation:
# cmake -DROOT=<repository> -P ...
cmake_minimum_required(VERSION 3.25)

file(READ ${ROOT}/README.md readme)
file(READ ${ROOT}/examples/quickstart/main.cpp example)

# between(<variable> <text> <opening> <closing>): the text between the two; each occurs once.
function(between variable text opening closing)
    foreach(mark IN ITEMS "${opening}" "${closing}")
        string(FIND "${text}" "${mark}" first)
        string(FIND "${text}" "${mark}" last REVERSE)
        if(first EQUAL -1 OR ("${mark}" STREQUAL "${opening}" AND NOT first EQUAL last))
            message(FATAL_ERROR "expected once: ${mark}")
        endif()
    endforeach()
    string(FIND "${text}" "${opening}" begin)
    string(LENGTH "${opening}" length)
    math(EXPR begin "${begin} + ${length}")
    string(SUBSTRING "${text}" ${begin} -1 text)
    string(FIND "${text}" "${closing}" length)
    string(SUBSTRING "${text}" 0 ${length} text)
    set(${variable} "${text}" PARENT_SCOPE)
endfunction()

between(shown "${readme}" "\n```cpp" "\n```")
between(region "${example}" "    // README.md shows the lines from here" "\n    // to here.\n")
string(REPLACE "\n    " "\n" region "${region}")
string(STRIP "${shown}" shown)
string(STRIP "${region}" region)
if("${region}" STREQUAL "" OR NOT "${shown}" STREQUAL "${region}")
    message(FATAL_ERROR "README.md does not show the marked part of examples/quickstart/main.cpp:\n${region}")
endif()
