# pip builds the Python package with the installed SDK, and the front page's program runs with it on the emulated device.
include(${CMAKE_CURRENT_LIST_DIR}/run_steps.cmake)

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
set(ENV{tessera_ROOT} "${PREFIX}")
set(site "${WORK}/site")
run(${PYTHON} -m pip install --quiet --no-build-isolation --no-deps --target ${site}
    --config-settings build-dir=${WORK}/build ${TESSERA_SOURCE})

# Beside Python files, a wheel has the module, the library under its soname, and the mark of types.
file(GLOB files RELATIVE ${site}/tessera ${site}/tessera/*)
list(FILTER files EXCLUDE REGEX "__pycache__")
list(FILTER files EXCLUDE REGEX "[.]pyi?$")
string(REGEX REPLACE "_core[^;]*[.]so" "_core.so" files "${files}")
if(NOT "${files}" MATCHES "^_core.so;libtessera_c[.]so[.][0-9]+[.][0-9]+;py.typed$")
    message(FATAL_ERROR "the package has other files than expected: ${files}")
endif()
file(READ ${TESSERA_SOURCE}/README.md readme)
string(REGEX MATCH "```python\n([^`]*)```" matched "${readme}")
file(WRITE ${WORK}/program.py "${CMAKE_MATCH_1}")
if(EMULATOR)
    set(ENV{PYTHONPATH} ${site})
    run(${EMULATOR} --device h200 --strict -- ${PYTHON} ${WORK}/program.py)
    if(NOT output MATCHES "^\\[\\[")
        message(FATAL_ERROR "README's program prints\n${output}")
    endif()
endif()
