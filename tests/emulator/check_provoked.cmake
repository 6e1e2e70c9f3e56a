# Each kind of finding is provoked by a test in at least two schedules; those of host code by a program in runtime/.
# FOUND: a folder of files with lines "kind schedule", which the tests wrote (support/run_ptx.cpp).
#
# cmake -DROOT=<repository> -DFOUND=<folder> -P check_provoked.cmake
cmake_minimum_required(VERSION 3.25)

file(GLOB files ${FOUND}/*.txt)
set(found)
foreach(file IN LISTS files)
    file(STRINGS ${file} lines)
    list(APPEND found ${lines})
endforeach()

file(READ ${ROOT}/sdk/emulator/checks/report.cpp source)
string(REGEX MATCHALL "std::string_view{\"[a-z-]+\"}" kinds "${source}")
list(TRANSFORM kinds REPLACE "std::string_view{\"([a-z-]+)\"}" "\\1")
if(NOT kinds)
    message(FATAL_ERROR "found no kinds of findings in checks/report.cpp")
endif()

file(READ ${CMAKE_CURRENT_LIST_DIR}/runtime/CMakeLists.txt programs)
foreach(kind IN LISTS kinds)
    if(kind MATCHES "^(resource-leak|host-memory-changed|failed-call)$")  # of host code: no schedule
        if(NOT programs MATCHES "${kind}")
            message(SEND_ERROR "no test in runtime/ expects ${kind}")
        endif()
    else()
        set(schedules ${found})
        list(FILTER schedules INCLUDE REGEX "^${kind} ")
        list(REMOVE_DUPLICATES schedules)
        list(LENGTH schedules count)
        if(count LESS 2)
            message(SEND_ERROR "${kind} is provoked in ${count} schedules, not in two or more: ${schedules}")
        endif()
    endif()
endforeach()
