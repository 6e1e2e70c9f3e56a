# What installed.cmake and source_tree.cmake share.
cmake_minimum_required(VERSION 3.25)

unset(ENV{DESTDIR})

# run(command...): stops with the command's output if it fails; its standard output is left in `output`.
function(run)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
    if(NOT result EQUAL 0)
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "${command}\nreturned ${result}:\n${output}${errors}")
    endif()
    set(output "${output}" PARENT_SCOPE)
endfunction()

# configure_build_and_run(<project> <definitions>...): also checks what the program prints.
function(configure_build_and_run project)
    run(${CMAKE_COMMAND} -S ${SOURCE}/${project} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
        -DCMAKE_CXX_COMPILER=${CXX_COMPILER} ${ARGN})
    run(${CMAKE_COMMAND} --build ${WORK}/build --config ${BUILD_TYPE} --target consumer)
    file(GLOB_RECURSE program ${WORK}/build/consumer ${WORK}/build/consumer.exe)
    run(${program})
    foreach(expected IN ITEMS "tessera ${TESSERA_VERSION}\n" "on B200 (compute capability 10.0" "runs: ")
        string(FIND "${output}" "${expected}" position)
        if(position EQUAL -1)
            message(FATAL_ERROR "the program should print\n  ${expected}\nand prints\n${output}")
        endif()
    endforeach()
endfunction()
