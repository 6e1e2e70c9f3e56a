# Third-party packages: an installed one is taken first, otherwise a pinned release whose hash is checked.
#
#   Microsoft.GSL   public headers use gsl::span
#   fmt             texts of errors and reports; header-only in the library, whose users need not have it
#   doctest         tests only
#   CLI11           command lines of examples and tools
#   zstd, lz4       compressed fat binaries, read by the emulated device; from the system, by pkg-config

include(FetchContent)

# tessera_dependency(<package> <target> <url> <sha256>)
macro(tessera_dependency package target url sha256)
    find_package(${package} CONFIG QUIET)
    if(NOT TARGET ${target})
        message(STATUS "${package} is not installed: fetching ${url}")
        FetchContent_Declare(${package} URL ${url} URL_HASH SHA256=${sha256} DOWNLOAD_EXTRACT_TIMESTAMP OFF)
        FetchContent_MakeAvailable(${package})
    endif()
endmacro()

# tessera::sdk is exported and links GSL, so a fetched GSL must be exported and installed with it.
set(GSL_INSTALL ON)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)
tessera_dependency(Microsoft.GSL Microsoft.GSL::GSL
    https://github.com/microsoft/GSL/archive/refs/tags/v4.0.0.tar.gz
    f0e32cb10654fea91ad56bde89170d78cfbf4363ee0b01d8f097de2ba49f6ce9)
tessera_dependency(fmt fmt::fmt-header-only
    https://github.com/fmtlib/fmt/archive/refs/tags/10.2.1.tar.gz
    1250e4cc58bf06ee631567523f48848dc4596133e163f02615c97f78bab6c811)
if(TESSERA_BUILD_TESTS)
    tessera_dependency(doctest doctest::doctest
        https://github.com/doctest/doctest/archive/refs/tags/v2.4.11.tar.gz
        632ed2c05a7f53fa961381497bf8069093f0d6628c5f26286161fbd32a560186)
endif()
if(TESSERA_BUILD_EXAMPLES OR TESSERA_BUILD_BENCH OR TESSERA_BUILD_EMULATOR)
    tessera_dependency(CLI11 CLI11::CLI11
        https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.4.2.tar.gz
        f2d893a65c3b1324c50d4e682c0cdc021dd0477ae2c048544f39eed6654b699a)
endif()
