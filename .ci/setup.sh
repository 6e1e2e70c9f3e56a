# Sourced by demo.sh and test.sh: finds or installs what the build needs, then configures and builds.
# Installs only what is missing, says what and why, and asks for sudo only if it has to.

say() { printf '== %s\n' "$*"; }
fail() { printf 'tessera: %s\n' "$*" >&2; exit 1; }

export PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin"

# have_header <relative path>: where CMake would look, too.
have_header() {
    local prefix prefixes=${CMAKE_PREFIX_PATH:-}
    for prefix in ${prefixes//:/ } /usr /usr/local; do
        [ -e "$prefix/include/$1" ] && return 0
    done
    return 1
}

# The package, why it is needed, and how to see that it is there.
missing_packages() {
    command -v cmake >/dev/null || echo "cmake:the build"
    command -v ninja >/dev/null || echo "ninja-build:the build"
    command -v g++ >/dev/null || echo "g++:the compiler"
    have_header gsl/span || echo "libmsgsl-dev:gsl::span in the public headers"
    have_header fmt/format.h || echo "libfmt-dev:texts of errors"
    have_header CLI/CLI.hpp || echo "libcli11-dev:command lines of the examples"
    have_header zstd.h || echo "libzstd-dev:compressed device code, read by the emulated device"
    have_header lz4.h || echo "liblz4-dev:the same"
    command -v pkg-config >/dev/null || echo "pkg-config:to find the two"
    have_header doctest/doctest.h || have_header doctest.h || echo "doctest-dev:the tests"
}

install_missing() {
    local missing packages
    missing=$(missing_packages)
    if [ -n "$missing" ]; then
        packages=$(cut -d: -f1 <<<"$missing" | tr '\n' ' ')
        say "missing packages:"
        sed 's/^\([^:]*\):\(.*\)$/     \1, for \2/' <<<"$missing"
        local as_root=
        [ "$(id -u)" = 0 ] || as_root=sudo
        # shellcheck disable=SC2086
        if command -v apt-get >/dev/null && { [ -z "$as_root" ] || command -v sudo >/dev/null; } &&
            $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends $packages >/dev/null; then
            say "installed: $packages"
        else
            say "they could not be installed here. With a network, CMake fetches pinned releases of the libraries instead;"
            say "without one, install these packages by hand: $packages"
        fi
    fi
    command -v nvcc >/dev/null ||
        fail "nvcc is not found. Install the CUDA Toolkit 13.0 or later, or set CUDA_HOME to where it is."
}

# Builds everything into build/; a second run does only what changed.
configure_and_build() {
    if [ ! -f build/build.ninja ]; then
        say "configuring"
        # shellcheck disable=SC2086
        cmake --preset default ${TESSERA_CMAKE_ARGS:-} >build-configure.log 2>&1 || {
            cat build-configure.log >&2
            rm -f build-configure.log
            fail "configuring failed"
        }
        rm -f build-configure.log
    fi
    say "building"
    local start=$SECONDS
    cmake --build --preset default || fail "the build failed"
    say "built in $((SECONDS - start)) s"
}

# A CUDA device that works, not only a driver that is installed.
have_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }
