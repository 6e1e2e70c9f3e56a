# Compiles and runs a program with the flags from pkg-config, against the tree that installed.cmake made.
include(${CMAKE_CURRENT_LIST_DIR}/run_steps.cmake)

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/build)
# pkg-config of freedesktop.org cannot quote a folder with a space in ${pcfiledir}.
file(CREATE_LINK "${PREFIX}" ${WORK}/prefix SYMBOLIC)
file(GLOB_RECURSE file ${WORK}/prefix/lib/tessera.pc ${WORK}/prefix/lib64/tessera.pc)
get_filename_component(folder "${file}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${folder})

run(${PKG_CONFIG} --modversion tessera)
if(NOT output STREQUAL "${TESSERA_VERSION}\n")
    message(FATAL_ERROR "pkg-config reports version ${output}")
endif()
run(${PKG_CONFIG} --validate tessera)

# The private requirements of a static library become the program's.
file(GLOB shared ${folder}/../libtessera.so)
foreach(options IN ITEMS "--static" "")
    if(NOT options AND NOT shared)
        continue()
    endif()
    run(${PKG_CONFIG} --cflags --libs ${options} tessera)
    separate_arguments(flags UNIX_COMMAND "${output}")
    # The CUDA runtime need not be where the dynamic linker looks.
    set(folders ${flags})
    list(FILTER folders INCLUDE REGEX "^-L")
    list(TRANSFORM folders REPLACE "^-L" "-Wl,-rpath,")
    # The linker is the C linker, so the flags must include everything that C++ needs.
    run(${CXX_COMPILER} -std=c++20 -nodefaultlibs ${SOURCE}/consumer/main.cpp ${flags} ${folders} -lm -lgcc_s -lgcc -lc
        -o ${WORK}/build/consumer)
    run_built(consumer PRINTS ${explained})
endforeach()
