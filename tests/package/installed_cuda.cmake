# Builds and runs a foreign project with its own kernels against the tree that installed.cmake made.
include(${CMAKE_CURRENT_LIST_DIR}/run_steps.cmake)

file(REMOVE_RECURSE ${WORK})
if(EMULATOR)
    set(EMULATOR ${PREFIX}/bin/tessera-emu)
endif()
build_and_run_cuda_consumer(-DCMAKE_PREFIX_PATH=${PREFIX})
