# README.md's only piece of C++ is the marked part of examples/quickstart/main.cpp, without its indentation:
# cmake -DROOT=<repository> -P ...
cmake_minimum_required(VERSION 3.25)

file(READ ${ROOT}/README.md readme)
file(READ ${ROOT}/examples/quickstart/main.cpp example)

include(${CMAKE_CURRENT_LIST_DIR}/between.cmake)

string(REGEX MATCHALL "\n```cpp" pieces "${readme}")
list(LENGTH pieces count)
if(NOT count EQUAL 1)
    message(FATAL_ERROR "README.md has ${count} pieces of C++ instead of one")
endif()
between(shown "${readme}" "\n```cpp" "\n```")
between(region "${example}" "    // README.md shows the lines from here" "\n    // to here.\n")
string(REPLACE "\n    " "\n" region "${region}")
string(STRIP "${shown}" shown)
string(STRIP "${region}" region)
if("${region}" STREQUAL "" OR NOT "${shown}" STREQUAL "${region}")
    message(FATAL_ERROR "README.md does not show the marked part of examples/quickstart/main.cpp:\n${region}")
endif()
