"""Conan 2 recipe of the checkout that contains it: conan create packaging/conan"""

import re
from pathlib import Path

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain
from conan.tools.files import copy, load


class TesseraConan(ConanFile):
    name = "tessera"
    description = "Typed matrix multiplication for NVIDIA GPUs"
    license = "Apache-2.0"
    topics = ("cuda", "gemm", "matrix", "gpu")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "architectures": ["ANY"],  # as TESSERA_ARCHITECTURES, with commas; "default": all
        "lineinfo": [True, False],
    }
    default_options = {
        "shared": False,
        "fPIC": True,
        "architectures": "default",
        "lineinfo": False,
        "fmt/*:header_only": True,
    }
    implements = ["auto_shared_fpic"]

    @property
    def _checkout(self):
        return Path(self.recipe_folder).parent.parent

    def set_version(self):
        header = load(self, self._checkout / "sdk/include/tessera/version.hpp")
        numbers = [re.search(rf"#define TESSERA_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH")]
        self.version = ".".join(numbers)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "docs/CMakeLists.txt", "kernels/*", "sdk/*"):
            copy(self, pattern, src=self._checkout, dst=self.export_sources_folder)

    def validate(self):
        check_min_cppstd(self, 20)

    def requirements(self):
        self.requires("ms-gsl/4.0.0", transitive_headers=True)
        self.requires("fmt/10.2.1", visible=False)

    def layout(self):
        # The recipe's folder is not the sources': what is exported lies at the root.
        self.folders.build = "build"
        self.folders.generators = "build/generators"

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        # The project asks for C++20 itself. CMake before 3.26 would refuse the block's demand for nvcc.
        toolchain.blocks.remove("cppstd")
        for part in ("BENCH", "C_LIBRARY", "EMULATOR", "EXAMPLES", "TESTS"):
            toolchain.cache_variables[f"TESSERA_BUILD_{part}"] = False
        toolchain.cache_variables["TESSERA_LINEINFO"] = bool(self.options.lineinfo)
        if self.options.architectures != "default":
            toolchain.cache_variables["TESSERA_ARCHITECTURES"] = str(self.options.architectures).replace(",", ";")
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install(component="dev")

    def package_info(self):
        # The SDK's own package file knows more than CMakeDeps could write: CUDA's runtime, C++20 for nvcc.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/tessera"]
        self.cpp_info.libs = ["tessera"]
        if self.settings.os == "Linux":
            self.cpp_info.system_libs = ["dl"]
