# Checks that a public header needs no other header before it, may be included twice and causes no warning:
#     cmake -DSETTINGS=<settings.cmake> -DHEADER=tessera/... -DCOMPILER=<C++ compiler, or nvcc> -P check_header.cmake

include(${CMAKE_CURRENT_LIST_DIR}/compiler_commands.cmake)

get_filename_component(compiler_name ${COMPILER} NAME)
string(MAKE_C_IDENTIFIER "header_${compiler_name}_${HEADER}" name)
if(COMPILER STREQUAL "nvcc")
    set(source ${work_directory}/${name}.cu)
    set(warnings ${device_warnings})
    tessera_device_command(command ${name})
else()
    set(source ${work_directory}/${name}.cpp)
    set(warnings ${host_warnings} -Wshadow)  # users may enable it, and include these headers as their own
    tessera_host_command(command ${COMPILER})
endif()

file(WRITE ${source} "#include \"${HEADER}\"\n#include \"${HEADER}\"\n")
execute_process(COMMAND ${command} ${warnings} ${source}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0)
    message(FATAL_ERROR "${HEADER} does not compile by itself:\n${output}")
endif()
