# Runs examples/planted_race on the emulated device: the forgotten barrier is found, with the lines of the two accesses in
# main.cu, under every schedule; with the barrier nothing is found, and the answer is right.
#
# The launch is named, too: the example's line, although the SDK makes it. HOST_LINES: the emulated device reads the debug
# information of host code.
#
# README.md shows this report's beginning; lines are wrapped there, and folders are left out.
#
# cmake -D RUN=<tessera-emu> -D PROGRAM=<planted_race> -D SOURCE=<main.cu> -D README=<README.md> -D HOST_LINES=<bool>
#     -P planted_race.cmake
file(READ ${SOURCE} source)
# line_of(<variable> <text>): the number of the only line with the text.
function(line_of variable text)
    string(FIND "${source}" "${text}" position)
    string(FIND "${source}" "${text}" last REVERSE)
    if(position EQUAL -1 OR NOT position EQUAL last)
        message(FATAL_ERROR "'${text}' is not on exactly one line of ${SOURCE}")
    endif()
    string(SUBSTRING "${source}" 0 ${position} before)
    string(REGEX MATCHALL "\n" newlines "${before}")
    list(LENGTH newlines count)
    math(EXPR count "${count} + 1")
    set(${variable} ${count} PARENT_SCOPE)
endfunction()
line_of(write "piece[threadIdx.x] = x[")
line_of(read "* piece[k]")
line_of(launch "launch(multiply<Barrier>")

# normalized(<variable> <report>): wherever it was built and however it is wrapped.
function(normalized variable text)
    string(REGEX REPLACE "[^ \n,(]*planted_race/main\\.cu" "main.cu" text "${text}")
    string(REGEX REPLACE "PTX line [0-9]+" "PTX line" text "${text}")
    string(REGEX REPLACE "[ \n]+" " " text "${text}")
    set(${variable} "${text}" PARENT_SCOPE)
endfunction()

file(READ ${README} readme)
set(command "$ tessera-emu --strict -- planted_race forgotten\n")
string(FIND "${readme}" "${command}" begin)
string(LENGTH "${command}" length)
math(EXPR start "${begin} + ${length}")
string(SUBSTRING "${readme}" ${start} -1 shown)
string(FIND "${shown}" "```" length)
string(SUBSTRING "${shown}" 0 ${length} shown)
if(begin EQUAL -1 OR NOT shown MATCHES "^tessera-emu: shared-race: ")
    message(FATAL_ERROR "README.md does not show what '${command}' prints")
endif()
normalized(shown "${shown}")
if(HOST_LINES)
    execute_process(COMMAND ${RUN} --device b200 --strict -- ${PROGRAM} forgotten
        OUTPUT_VARIABLE output ERROR_VARIABLE report)
    normalized(report_shown "${report}")
    string(FIND "${report_shown}" "${shown}" position)
    if(NOT position EQUAL 0)
        message(FATAL_ERROR "README.md shows\n${shown}\nand the report is\n${report}")
    endif()
endif()

foreach(schedule in-order random adversarial)
    execute_process(COMMAND ${RUN} --device b200 --strict --schedule ${schedule} -- ${PROGRAM} forgotten
        RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT result EQUAL 86 OR NOT output MATCHES "shared-race" OR
       NOT output MATCHES "planted_race/main\\.cu:(${write}|${read})[^0-9]")
        message(FATAL_ERROR "${schedule}: the race of main.cu:${write} and :${read} was not reported, exit code ${result}:\n${output}")
    endif()
    if(HOST_LINES AND NOT output MATCHES "launched at [^\n]*planted_race/main\\.cu:${launch} in multiply_and_check<")
        message(FATAL_ERROR "${schedule}: the launch at main.cu:${launch} was not named:\n${output}")
    endif()
    execute_process(COMMAND ${RUN} --device b200 --strict --schedule ${schedule} -- ${PROGRAM} corrected
        RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT result EQUAL 0 OR NOT output STREQUAL "y = A * x, 128x512: 0 of 128 elements wrong\n")
        message(FATAL_ERROR "${schedule}: the corrected kernel is not clean, exit code ${result}:\n${output}")
    endif()
endforeach()
