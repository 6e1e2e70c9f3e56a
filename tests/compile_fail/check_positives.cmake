# Checks that cases compile without a warning if NEGATIVE is not defined:
#     cmake -DSETTINGS=<settings.cmake> -DSOURCES=<case>,<case>... -DNAME=<of this check> -P check_positives.cmake
#
# The cases of one architecture are one translation unit, with a namespace for each, because most of the time that a case takes
# alone is that of its headers. These come first, outside of the namespaces.

include(${CMAKE_CURRENT_LIST_DIR}/compiler_commands.cmake)

string(REPLACE "," ";" sources "${SOURCES}")
foreach(source IN LISTS sources)
    get_filename_component(case ${source} NAME_WE)
    get_filename_component(extension ${source} EXT)
    set(architecture default)
    tessera_case_says(architecture ${source} "// architecture:")
    list(APPEND architectures ${architecture})
    file(STRINGS ${source} includes REGEX "^#include ")
    list(APPEND includes_${architecture} ${includes})
    string(APPEND text_${architecture} "namespace ${case} {\n#include \"${source}\"\n}\n")
endforeach()
list(REMOVE_DUPLICATES architectures)

foreach(architecture IN LISTS architectures)
    set(name ${NAME}_${architecture})
    if(extension STREQUAL ".cu")
        set(warnings ${device_warnings})
        string(REPLACE "default" "" chosen ${architecture})
        tessera_device_command(command ${name} ${chosen})
    else()
        set(warnings ${host_warnings})
        tessera_host_command(command ${cxx_compiler})
    endif()
    list(REMOVE_DUPLICATES includes_${architecture})
    list(JOIN includes_${architecture} "\n" includes)
    set(unit ${work_directory}/${name}${extension})
    file(WRITE ${unit} "${includes}\n${text_${architecture}}")
    execute_process(COMMAND ${command} ${warnings} ${unit}
        RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "the positive twins do not compile:\n${output}")
    endif()
endforeach()
