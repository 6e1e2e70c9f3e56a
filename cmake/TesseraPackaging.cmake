# What is installed besides the library and the tools, and how CPack makes packages of it: cpack -G DEB in the build folder
# of the preset `package`.

# As in the source tree, so that the pages' links to each other and to the examples work.
include(GNUInstallDirs)
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc FILES_MATCHING
    PATTERN "*.md" PATTERN "*.ipynb" PATTERN "*.png" PATTERN "*.svg" PATTERN "checks" EXCLUDE PATTERN "site" EXCLUDE)
install(DIRECTORY packaging DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(FILES bench/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench COMPONENT doc)
install(DIRECTORY bench/results DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench COMPONENT doc)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)

# A copy of the licence with each part: they can be installed apart.
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/licenses/tessera COMPONENT dev)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/licenses/tessera-tools COMPONENT tools)

set(CPACK_PACKAGE_NAME tessera)
set(CPACK_PACKAGE_VENDOR Tessera)
set(CPACK_PACKAGE_CONTACT "The Tessera developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_GENERATOR TGZ)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_COMPONENTS_ALL dev tools doc)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libtessera-dev)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME tessera-tools)
set(CPACK_DEBIAN_DOC_PACKAGE_NAME tessera-doc)
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers, library, and files for CMake and pkg-config.")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "The emulated device (tessera-emu) and the benchmark (tessera-bench).")
set(CPACK_COMPONENT_DOC_DESCRIPTION "The guide and the examples, in /usr/share/doc/tessera.")
# The CUDA Toolkit may have come from NVIDIA's packages or from its installer, which dpkg knows nothing of.
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS
    "cuda-cudart-dev-${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR}, tessera-tools, tessera-doc")
get_target_property(gsl_is_imported Microsoft.GSL::GSL IMPORTED)
if(gsl_is_imported)
    set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS libmsgsl-dev)
endif()
find_program(TESSERA_DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(TESSERA_DPKG_SHLIBDEPS)
if(TESSERA_DPKG_SHLIBDEPS)
    set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
