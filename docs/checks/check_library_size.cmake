# The sizes of the library that docs/cmake.md and docs/building.md name are that of the built one, within a tenth:
# cmake -DROOT=<repository> -DLIBRARY=<libtessera.a> -P ...
cmake_minimum_required(VERSION 3.25)

file(SIZE ${LIBRARY} bytes)
math(EXPR built "(${bytes} + 50000) / 100000")  # tenths of a megabyte

function(compare file pattern)
    file(READ ${ROOT}/${file} text)
    if(NOT text MATCHES "${pattern}")
        message(FATAL_ERROR "${file} names no size of the library where one is expected: ${pattern}")
    endif()
    set(written "${CMAKE_MATCH_1}${CMAKE_MATCH_2}")
    math(EXPR difference "${written} - ${built}")
    string(REPLACE "-" "" difference "${difference}")
    math(EXPR allowed "${built} / 10")
    if(difference GREATER allowed)
        message(FATAL_ERROR "${file} says that the library has ${CMAKE_MATCH_1}.${CMAKE_MATCH_2} MB, and ${LIBRARY} has "
            "${bytes} bytes")
    endif()
endfunction()
compare(docs/cmake.md "to the ([0-9]+)\\.([0-9]) MB of the default")
compare(docs/building.md "libtessera\\.a`[^|\n]*\\| ([0-9]+)\\.([0-9]) MB")
