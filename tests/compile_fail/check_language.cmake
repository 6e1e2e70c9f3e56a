# Checks that each public header reports an older standard before anything else fails, and stops there:
#     cmake -DSETTINGS=<settings.cmake> -DHEADERS=tessera/...,tessera/... -DCOMPILER=<C++ compiler, or nvcc>
#         -P check_language.cmake

include(${CMAKE_CURRENT_LIST_DIR}/compiler_commands.cmake)

get_filename_component(compiler_name ${COMPILER} NAME)
if(COMPILER STREQUAL "nvcc")
    set(source ${work_directory}/language_${compiler_name}.cu)
    tessera_device_command(command language_${compiler_name})
    set(cure "nvcc -std=c..20")
else()
    set(source ${work_directory}/language_${compiler_name}.cpp)
    tessera_host_command(command ${COMPILER})
    set(cure "-std=c..20")
endif()
string(REPLACE "-std=c++20" "-std=c++17" command "${command}")

string(REPLACE "," ";" headers "${HEADERS}")
foreach(header IN LISTS headers)
    file(WRITE ${source} "#include \"${header}\"\n")
    execute_process(COMMAND ${command} ${source}
        RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(result EQUAL 0)
        message(FATAL_ERROR "${header} compiles as C++17")
    endif()
    string(REGEX MATCHALL "[^\n]*error:[^\n]*" errors "${output}")
    list(LENGTH errors count)
    list(GET errors 0 first)
    if(NOT first MATCHES "Tessera needs C..20: compile with ${cure}" OR count GREATER 2)
        message(FATAL_ERROR "${header} as C++17 should fail with Tessera's sentence alone, but fails with\n${output}")
    endif()
endforeach()
