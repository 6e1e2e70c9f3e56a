# The same with a project that has kernels of its own. source_tree.cmake builds the library, which takes the time, so that this
# one only compiles the project's sources.
include(${CMAKE_CURRENT_LIST_DIR}/run_steps.cmake)

file(REMOVE_RECURSE ${WORK})
configure(${SOURCE}/cuda_consumer -DTESSERA_SOURCE=${TESSERA_SOURCE})
check_cuda_runtime()
if(GENERATOR STREQUAL "Ninja")
    # Files, because the target of an object library waits for the library that it is linked with.
    run(${CMAKE} --build ${WORK}/build --target CMakeFiles/consumer.dir/main.cu.o CMakeFiles/tma_consumer.dir/tma.cu.o
        CMakeFiles/standard_consumer.dir/main.cu.o)
    file(GLOB_RECURSE kernels ${WORK}/build/tessera/kernels/*.o)
    if(kernels)
        message(FATAL_ERROR "a project's sources wait for the library's kernels: ${kernels}")
    endif()
endif()

# The project left the architectures to CMake, which guesses the oldest one for it. Not for the library.
run(${CMAKE} --build ${WORK}/build --target help)
if(NOT output MATCHES "tessera_hopper_kernels" OR NOT output MATCHES "tessera_blackwell_kernels")
    message(FATAL_ERROR "the library would be built without its kernels for tensor cores:\n${output}")
endif()

# Before 1.0 a minor release may break programs, so the shared library's name has both numbers.
if(GENERATOR STREQUAL "Ninja")
    configure(${SOURCE}/cuda_consumer -DTESSERA_SOURCE=${TESSERA_SOURCE} -DBUILD_SHARED_LIBS=ON)
    file(STRINGS ${WORK}/build/build.ninja names REGEX "^ *SONAME = libtessera[.]")
    string(REGEX REPLACE "[.][0-9]+$" "" expected "libtessera.so.${TESSERA_VERSION}")
    if(TESSERA_VERSION VERSION_LESS 1.0 AND NOT names MATCHES "SONAME = ${expected}$")
        message(FATAL_ERROR "the soname is not ${expected}: ${names}")
    endif()
endif()
