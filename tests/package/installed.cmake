# Installs the build, looks at what was installed, and builds and runs a foreign project against it.
include(${CMAKE_CURRENT_LIST_DIR}/run_steps.cmake)

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${TESSERA_BUILD} --config ${BUILD_TYPE} --prefix ${WORK}/staging)
# A user may unpack it anywhere.
set(prefix "${WORK}/a prefix")
file(RENAME ${WORK}/staging ${prefix})

# Public headers, one library and the CMake package; the emulated device; and GSL, where this build brought its own.
set(expected "^(include/(tessera|gsl)/|lib[^/]*/([^/]+/)?(libtessera|cmake/tessera/|tessera-emulator/lib(cudart|cuda)[.]so)|bin/tessera-emu$|share/cmake/Microsoft.GSL/)")
file(GLOB_RECURSE installed RELATIVE ${prefix} ${prefix}/*)
foreach(path IN LISTS installed)
    if(NOT path MATCHES "${expected}")
        message(FATAL_ERROR "${path} is none of a user's business and was installed")
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

configure_build_and_run(consumer "-DCMAKE_PREFIX_PATH=${prefix}")
