# Installs the build, checks the installed files, and builds and runs a foreign project against them.
include(${CMAKE_CURRENT_LIST_DIR}/run_steps.cmake)

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${TESSERA_BUILD} --config ${BUILD_TYPE} --prefix ${WORK}/staging)
# The tree must work at any place.
set(prefix "${PREFIX}")
file(REMOVE_RECURSE ${prefix})
file(RENAME ${WORK}/staging ${prefix})

# Public headers, one library, and the files for CMake and pkg-config; the tools; the guide and the examples; and GSL,
# if this build brought its own.
set(expected "^(include/((tessera|gsl)/|tessera[.]h$|tessera_distributed[.]h$)"
    "|lib[^/]*/([^/]+/)?(libtessera|cmake/tessera/|pkgconfig/tessera[.]pc|tessera-emulator/(lib(cudart|cuda)[.]so|ptxas$))"
    "|bin/tessera-(emu|bench|bench-distributed)$|share/(doc|licenses)/tessera|share/cmake/Microsoft.GSL/)")
list(JOIN expected "" expected)
file(GLOB_RECURSE installed RELATIVE ${prefix} ${prefix}/*)
foreach(path IN LISTS installed)
    if(NOT path MATCHES "${expected}")
        message(FATAL_ERROR "${path} is internal, but was installed")
    endif()
endforeach()

file(GLOB_RECURSE public_headers RELATIVE ${TESSERA_SOURCE}/sdk/include ${TESSERA_SOURCE}/sdk/include/*)
foreach(header IN LISTS public_headers)
    if(NOT EXISTS "${prefix}/include/${header}")
        message(FATAL_ERROR "${header} was not installed")
    endif()
    file(STRINGS "${prefix}/include/${header}" includes REGEX "^ *#include \"tessera/")
    foreach(include IN LISTS includes)
        string(REGEX REPLACE "^ *#include \"([^\"]*)\".*" "\\1" target "${include}")
        if(NOT EXISTS "${prefix}/include/${target}")
            message(FATAL_ERROR "${header} includes ${target}, which was not installed")
        endif()
    endforeach()
endforeach()

# The documentation is complete, as its links show, and the pages named in the library's messages exist.
set(documentation "${prefix}/share/doc/tessera")
foreach(file IN ITEMS LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs/index.md
        docs/errors/README.md docs/blackwell-ladder.md examples/quickstart/main.cpp)
    if(NOT EXISTS "${documentation}/${file}")
        message(FATAL_ERROR "${file} was not installed")
    endif()
endforeach()
run(${CMAKE_COMMAND} "-DROOT=${documentation}" -P ${TESSERA_SOURCE}/docs/checks/check_links.cmake)

configure_and_build(${SOURCE}/consumer -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_MODULE_PATH=${SOURCE}/modules)
run_built(consumer PRINTS ${explained})
run_built(distributed_consumer PRINTS "rank 1 of 3 has 4 of 11 rows")
