# Builds and runs a foreign project that takes in this source tree. No kernel runs, so their code is made as fast as possible: PTX
# alone, and without optimization.
include(${CMAKE_CURRENT_LIST_DIR}/run_steps.cmake)

file(REMOVE_RECURSE ${WORK})
configure_and_build(${SOURCE}/subproject -DFETCHCONTENT_SOURCE_DIR_TESSERA=${TESSERA_SOURCE}
    -DTESSERA_ARCHITECTURES=75-virtual -DCMAKE_CUDA_FLAGS=--Ofast-compile=max -DCMAKE_MODULE_PATH=${SOURCE}/modules)
run_built(consumer PRINTS ${explained})

# A project that takes the SDK in gets the SDK: no tests, examples or benchmarks.
foreach(folder IN ITEMS tests examples bench)
    file(GLOB_RECURSE unwanted ${WORK}/build/_deps/tessera-build/${folder}/*)
    if(unwanted)
        message(FATAL_ERROR "the foreign build contains ${unwanted}")
    endif()
endforeach()
