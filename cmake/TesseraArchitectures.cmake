# Which architectures the kernels are compiled for: TESSERA_ARCHITECTURES if it is set, else CMAKE_CUDA_ARCHITECTURES if the
# user or the project around this one chose it, else all. Included before project(), for this folder and below.

set(TESSERA_ARCHITECTURES "" CACHE STRING "Architectures that the kernels are compiled for, such as 90-real;100-real")

# CMake's own guess, the oldest architecture that nvcc knows, is not a choice: it would leave every tensor core idle.
set(architectures_are_chosen OFF)
if(DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(architectures_are_chosen ON)
    get_property(help CACHE CMAKE_CUDA_ARCHITECTURES PROPERTY HELPSTRING)
    if(help STREQUAL "CUDA architectures" AND NOT DEFINED ENV{CUDAARCHS}
        AND CMAKE_CUDA_ARCHITECTURES STREQUAL "$CACHE{CMAKE_CUDA_ARCHITECTURES}"
        AND CMAKE_CUDA_ARCHITECTURES MATCHES "^[0-9]+$")
        set(architectures_are_chosen OFF)
    endif()
endif()

# Machine code for each family that exists, and PTX of the two generations that differ for SIMT kernels (8.0 has
# cp.async), for devices that are newer than this release.
set(TESSERA_DEFAULT_ARCHITECTURES 75 80 90-real 100-real 120-real)
if(TESSERA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES ${TESSERA_ARCHITECTURES})
elseif(NOT architectures_are_chosen)
    set(CMAKE_CUDA_ARCHITECTURES ${TESSERA_DEFAULT_ARCHITECTURES})
    set(TESSERA_TEST_ARCHITECTURES 75-virtual 90)  # of the tests' own kernels: what tests need of an architecture, once
endif()
message(STATUS "Architectures of the kernels: ${CMAKE_CUDA_ARCHITECTURES} (TESSERA_ARCHITECTURES chooses others)")
