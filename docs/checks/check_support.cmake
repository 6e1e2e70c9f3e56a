# docs/support.md is what the library says: cmake -DROOT=<repository> -DPROGRAM=<tessera-support-table> -P ...
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed RESULT_VARIABLE result)
file(READ ${ROOT}/docs/support.md page)
if(NOT result EQUAL 0 OR NOT "${printed}" STREQUAL "${page}")
    message(FATAL_ERROR "docs/support.md is out of date. Regenerate it:\n  ${PROGRAM} > ${ROOT}/docs/support.md")
endif()
