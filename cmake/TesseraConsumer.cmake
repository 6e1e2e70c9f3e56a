# What a project that links tessera::sdk needs of its own CMake: CUDA sources in C++20, and one CUDA runtime. Included by
# tesseraConfig.cmake and by a build that another project adds; nothing in here needs the CUDA language.

# CMake before 3.26 does not know that nvcc 12 and later speak C++20: it gives nvcc no -std at all. The variables make
# CUDA_STANDARD 20 work in this folder and below; the target's own option works everywhere.
macro(tessera_teach_cuda20)
    if(CMAKE_VERSION VERSION_LESS 3.26 AND NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20 ${ARGN})
        set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20 ${ARGN})
    endif()
endmacro()

# The SDK links the shared runtime. CMake's default for a target with CUDA sources is to link the static one besides.
macro(tessera_share_cuda_runtime)
    if(NOT DEFINED CMAKE_CUDA_RUNTIME_LIBRARY)
        set(CMAKE_CUDA_RUNTIME_LIBRARY Shared ${ARGN})
    elseif(CMAKE_CUDA_RUNTIME_LIBRARY STREQUAL "Static")
        message(WARNING "tessera::sdk links the shared CUDA runtime, and CMAKE_CUDA_RUNTIME_LIBRARY is Static: programs "
            "with CUDA sources would link both. Leave it unset or set it to Shared.")
    endif()
endmacro()

# tessera_compile_cuda_users(<target>): what links it compiles its CUDA sources as C++20.
function(tessera_compile_cuda_users target)
    if(CMAKE_VERSION VERSION_LESS 3.26)
        set_property(TARGET ${target} APPEND PROPERTY
            INTERFACE_COMPILE_OPTIONS $<BUILD_INTERFACE:$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-std=c++20>>)
    endif()
endfunction()
