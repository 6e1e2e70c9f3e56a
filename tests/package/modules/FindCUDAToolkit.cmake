# CMake's own module, as strict as that of CMake 3.25.1: in a project that requires 3.25 it sets a property of CUDA::nvToolsExt, which
# CUDA 13 does not have.
include(${CMAKE_ROOT}/Modules/FindCUDAToolkit.cmake)
if(CMAKE_MINIMUM_REQUIRED_VERSION VERSION_GREATER_EQUAL 3.25 AND NOT TARGET CUDA::nvToolsExt)
    message(FATAL_ERROR "set_property could not find TARGET CUDA::nvToolsExt")
endif()
