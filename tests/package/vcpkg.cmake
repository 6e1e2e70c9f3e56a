# The vcpkg port without vcpkg: the manifest against this build, and the portfile with stand-ins for the functions of
# vcpkg that install what was built. What they do is what vcpkg's documentation says; a foreign project is then built and run
# against the result.
include(${CMAKE_CURRENT_LIST_DIR}/run_steps.cmake)

file(REMOVE_RECURSE ${WORK})
set(CURRENT_PORT_DIR ${TESSERA_SOURCE}/packaging/vcpkg/tessera)
set(CURRENT_PACKAGES_DIR ${WORK}/packages/tessera_x64-linux)
set(PORT tessera)

file(READ ${CURRENT_PORT_DIR}/vcpkg.json manifest)
string(JSON version GET "${manifest}" version)
string(JSON name GET "${manifest}" name)
if(NOT version STREQUAL TESSERA_VERSION OR NOT name STREQUAL PORT)
    message(FATAL_ERROR "the manifest is of ${name} ${version}, the build of tessera ${TESSERA_VERSION}")
endif()

# vcpkg_check_features(OUT_FEATURE_OPTIONS <variable> FEATURES <feature> <option>...): for the default features.
function(vcpkg_check_features)
    cmake_parse_arguments(call "" "OUT_FEATURE_OPTIONS" "FEATURES" ${ARGN})
    set(options)
    while(call_FEATURES)
        list(POP_FRONT call_FEATURES feature option)
        string(JSON description GET "${manifest}" features ${feature} description)  # an unknown one is an error
        list(APPEND options -D${option}=OFF)
    endwhile()
    set(${call_OUT_FEATURE_OPTIONS} ${options} PARENT_SCOPE)
endfunction()

# Every option must be one that this project knows.
function(vcpkg_cmake_configure)
    cmake_parse_arguments(call "" "SOURCE_PATH" "OPTIONS" ${ARGN})
    if(call_UNPARSED_ARGUMENTS OR NOT EXISTS ${call_SOURCE_PATH}/CMakeLists.txt)
        message(FATAL_ERROR "vcpkg_cmake_configure(${ARGN})")
    endif()
    file(STRINGS ${TESSERA_BUILD}/CMakeCache.txt cache)
    foreach(option IN LISTS call_OPTIONS)
        if(NOT option MATCHES "^-D([A-Z_]+)=(ON|OFF)$")
            message(FATAL_ERROR "${option} sets nothing")
        endif()
        set(known ${cache})
        list(FILTER known INCLUDE REGEX "^${CMAKE_MATCH_1}:BOOL=")
        if(NOT known)
            message(FATAL_ERROR "the project has no option ${CMAKE_MATCH_1}")
        endif()
    endforeach()
endfunction()

function(vcpkg_cmake_install)
    foreach(prefix IN ITEMS ${CURRENT_PACKAGES_DIR} ${CURRENT_PACKAGES_DIR}/debug)
        run(${CMAKE_COMMAND} --install ${TESSERA_BUILD} --config ${BUILD_TYPE} --prefix ${prefix} --component dev)
    endforeach()
endfunction()

# vcpkg_cmake_config_fixup(CONFIG_PATH <folder>): moves the package files to share/<port>, those of the debug build's
# targets besides, and makes the prefix of the targets one level nearer.
function(vcpkg_cmake_config_fixup)
    cmake_parse_arguments(call "" "CONFIG_PATH" "" ${ARGN})
    set(share ${CURRENT_PACKAGES_DIR}/share/${PORT})
    file(GLOB files ${CURRENT_PACKAGES_DIR}/${call_CONFIG_PATH}/*)
    if(NOT files)
        message(FATAL_ERROR "there is no ${call_CONFIG_PATH}")
    endif()
    file(MAKE_DIRECTORY ${share})
    foreach(file IN LISTS files)
        file(READ ${file} text)
        string(REGEX REPLACE "(get_filename_component[(]_IMPORT_PREFIX \"[^\n]*\n)(get_filename_component[(]_IMPORT_PREFIX[^\n]*\n)+"
            "\\1get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n"
            text "${text}")
        get_filename_component(name ${file} NAME)
        file(WRITE ${share}/${name} "${text}")
    endforeach()
    file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/lib/cmake ${CURRENT_PACKAGES_DIR}/debug/lib/cmake)
endfunction()

function(vcpkg_fixup_pkgconfig)
    foreach(prefix IN ITEMS ${CURRENT_PACKAGES_DIR} ${CURRENT_PACKAGES_DIR}/debug)
        if(NOT EXISTS ${prefix}/lib/pkgconfig/tessera.pc)
            message(FATAL_ERROR "there is no pkg-config file below ${prefix}/lib")
        endif()
    endforeach()
endfunction()

function(vcpkg_install_copyright)
    cmake_parse_arguments(call "" "" "FILE_LIST" ${ARGN})
    file(INSTALL ${call_FILE_LIST} DESTINATION ${CURRENT_PACKAGES_DIR}/share/${PORT} RENAME copyright)
endfunction()

include(${CURRENT_PORT_DIR}/portfile.cmake)

# What vcpkg checks after the build: no headers, share or empty folders of the debug build, a copyright, no CMake files in lib.
foreach(unwanted IN ITEMS debug/include debug/share lib/cmake debug/lib/cmake)
    if(EXISTS ${CURRENT_PACKAGES_DIR}/${unwanted})
        message(FATAL_ERROR "the port leaves ${unwanted}")
    endif()
endforeach()
file(GLOB_RECURSE installed RELATIVE ${CURRENT_PACKAGES_DIR} ${CURRENT_PACKAGES_DIR}/*)
foreach(path IN LISTS installed)
    if(NOT path MATCHES "^(include/((tessera|gsl)/|tessera(_distributed)?[.]h$)|(debug/)?lib/(libtessera(_c|_distributed)?[.]|pkgconfig/tessera[.]pc$)|share/(tessera|Microsoft.GSL|cmake)/)")
        message(FATAL_ERROR "the port installs ${path}")
    endif()
endforeach()
foreach(wanted IN ITEMS share/tessera/copyright share/tessera/usage share/tessera/tesseraConfig.cmake)
    if(NOT EXISTS ${CURRENT_PACKAGES_DIR}/${wanted})
        message(FATAL_ERROR "the port lacks ${wanted}")
    endif()
endforeach()

configure_and_build(${SOURCE}/consumer -DCMAKE_PREFIX_PATH=${CURRENT_PACKAGES_DIR})
run_built(consumer PRINTS ${explained})
