# The Conan recipe: creates the package from this checkout, and builds and runs the recipe's test project against it.
# GSL and {fmt} come from the system, so that nothing is downloaded. Kernels are compiled to PTX only, which is faster.
include(${CMAKE_CURRENT_LIST_DIR}/run_steps.cmake)

file(REMOVE_RECURSE ${WORK})
set(ENV{CONAN_HOME} ${WORK}/home)
set(ENV{CUDACXX} ${CUDA_COMPILER})
if(COMPILER_LAUNCHER)
    set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} ${COMPILER_LAUNCHER})
    set(ENV{CMAKE_CUDA_COMPILER_LAUNCHER} ${COMPILER_LAUNCHER})
endif()
run(${CONAN} profile detect)
file(WRITE ${WORK}/system "[platform_requires]\nms-gsl/4.0.0\nfmt/10.2.1\n")
set(options --no-remote --profile:all default --profile:all ${WORK}/system --settings:all compiler.cppstd=20
    --options tessera/*:architectures=75-virtual)
run(${CONAN} create ${TESSERA_SOURCE}/packaging/conan ${options} --test-folder=)

# A copy, because Conan builds inside the test's folder.
file(COPY ${TESSERA_SOURCE}/packaging/conan/test_package DESTINATION ${WORK})
execute_process(COMMAND ${CONAN} test ${WORK}/test_package tessera/${TESSERA_VERSION} ${options}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)  # the program's output is part of Conan's
foreach(expected IN ITEMS "tessera ${TESSERA_VERSION}\n" "runs: ")
    string(FIND "${output}" "${expected}" position)
    if(NOT result EQUAL 0 OR position EQUAL -1)
        message(FATAL_ERROR "the test project should print\n  ${expected}\nbut returned ${result}:\n${output}")
    endif()
endforeach()
