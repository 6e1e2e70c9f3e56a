# Runs ${program} with ${arguments} (a list) and fails unless it exits with ${code} and says ${message}.
execute_process(COMMAND ${program} ${arguments} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result STREQUAL code)
    message(FATAL_ERROR "exit code ${result}, expected ${code}; output:\n${output}")
endif()
string(FIND "${output}" "${message}" position)
if(position EQUAL -1)
    message(FATAL_ERROR "the output lacks '${message}':\n${output}")
endif()
