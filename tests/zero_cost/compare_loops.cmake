# Compiles typed_loop.cu and raw_loop.cu and compares the loops around their matrix instructions.

cmake_minimum_required(VERSION 3.25)

if(NOT NVDISASM)
    message("skipped: no nvdisasm")
    return()
endif()

# Sets <variable> to "<instructions> <of them matrix instructions>" of the loop that multiplies.
function(measure_loop name variable)
    execute_process(COMMAND ${NVCC} -std=c++20 -arch=sm_100a -I${ROOT} -I${ROOT}/sdk/include -cubin
        -o ${WORK}/${name}.cubin ${ROOT}/tests/zero_cost/${name}.cu COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND ${NVDISASM} -c ${WORK}/${name}.cubin OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX REPLACE "[][;]" " " text "${text}")  # would confuse CMake's lists
    string(REPLACE "\n" ";" lines "${text}")
    set(instructions 0)
    set(matrix 0)
    set(loop "")
    foreach(line IN LISTS lines)
        if(line MATCHES "^\\.L_x_([0-9]+):")
            set(instructions_at_${CMAKE_MATCH_1} ${instructions})
            set(matrix_at_${CMAKE_MATCH_1} ${matrix})
        elseif(line MATCHES "/\\*[0-9a-f]+\\*/ +[^ ]")
            math(EXPR instructions "${instructions} + 1")
            if(line MATCHES "UTC[A-Z]*MMA")
                math(EXPR matrix "${matrix} + 1")
            elseif(NOT loop AND line MATCHES "BRA.*\\.L_x_([0-9]+)")
                set(label ${CMAKE_MATCH_1})
                if(DEFINED instructions_at_${label})  # a branch back
                    math(EXPR inside "${matrix} - ${matrix_at_${label}}")
                    if(inside GREATER 0)
                        math(EXPR count "${instructions} - ${instructions_at_${label}}")
                        set(loop "${count} ${inside}")
                    endif()
                endif()
            endif()
        endif()
    endforeach()
    set(${variable} "${loop}" PARENT_SCOPE)
endfunction()

measure_loop(typed_loop typed)
measure_loop(raw_loop raw)
message("instructions, and matrix instructions among them: typed ${typed}, raw ${raw}")
if(NOT typed OR NOT typed STREQUAL raw)
    message(FATAL_ERROR "the typed loop is not the raw one")
endif()
