# Sourced by demo.sh, test.sh and .ci/run: finds or installs what the build needs, then configures and builds.
# Installs only what is missing, says what and why, and asks before it uses sudo.

# Colour only where a person sees it.
bold='' dim='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
fi

say() { printf '%s== %s%s\n' "$bold" "$*" "$plain"; }
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

# missing_packages [tests]: the package, and why it is needed, if it is not installed.
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
    [ "${1:-}" != tests ] || have_header doctest/doctest.h || have_header doctest.h || echo "doctest-dev:the tests"
}

# may_install: true if packages may be installed. Root needs no permission, and who cannot be asked (-y, CI, no terminal)
# has given it by starting the script.
may_install() {
    [ "$(id -u)" != 0 ] && [ -z "${TESSERA_YES:-}" ] && [ -z "${CI:-}" ] && [ -t 0 ] && [ -t 1 ] || return 0
    local answer
    read -r -p "   Install them with sudo apt-get? [Y/n] " answer
    case $answer in '' | [yY]*) return 0 ;; *) return 1 ;; esac
}

# apt_install <package>...: installs them; true on success.
apt_install() {
    local as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    command -v apt-get >/dev/null && { [ -z "$as_root" ] || command -v sudo >/dev/null; } && may_install &&
        $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# install_missing [tests]
install_missing() {
    local missing packages
    missing=$(missing_packages "$@")
    if [ -n "$missing" ]; then
        packages=$(cut -d: -f1 <<<"$missing" | tr '\n' ' ')
        say "missing packages:"
        sed 's/^\([^:]*\):\(.*\)$/     \1, for \2/' <<<"$missing"
        # shellcheck disable=SC2086
        if apt_install $packages; then
            say "installed: $packages"
        else
            say "they were not installed. With a network, CMake fetches pinned releases of the libraries instead;"
            say "without one, install these packages by hand: $packages"
        fi
    fi
    command -v nvcc >/dev/null ||
        fail "nvcc is not found. Install the CUDA Toolkit 13.0 or later, or set CUDA_HOME to where it is."
}

# configure <preset> <argument>...
configure() {
    local log
    log=$(mktemp)
    # shellcheck disable=SC2086
    cmake --preset "$@" ${TESSERA_CMAKE_ARGS:-} >"$log" 2>&1 || {
        cat "$log" >&2
        rm -f "$log"
        fail "configuring failed"
    }
    rm -f "$log"
}

# progress: of ninja's lines, one for every tenth part. Warnings and errors pass as they are, ptxas's remarks do not.
progress() {
    local line tenth last=
    while IFS= read -r line; do
        if [[ $line =~ ^@([0-9]+)\ ([0-9]+)\ ([0-9]+) ]]; then
            tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
            [ "$tenth" = "$last" ] || printf '   %3d %%, %d s\n' $((10 * tenth)) "${BASH_REMATCH[3]}"
            last=$tenth
        elif [[ $line != "ninja: no work to do"* && $line != "ptxas info"* ]]; then
            printf '%s\n' "$line"
        fi
    done
}

# build <preset> [<target>...]: on a terminal one line of progress, elsewhere a line for every tenth part.
build() {
    local preset=$1
    shift
    if [ -t 1 ]; then
        NINJA_STATUS='   %p, %es: ' cmake --build --preset "$preset" ${1:+--target "$@"}
    else
        NINJA_STATUS='@%f %t %e@' cmake --build --preset "$preset" ${1:+--target "$@"} | progress
    fi || fail "the build failed"
}

# Builds everything into build/; a second run does only what changed.
configure_and_build() {
    if [ ! -f build/build.ninja ]; then
        say "configuring"
        # What is only measured is compiled for one architecture where nothing can be measured.
        if have_gpu; then configure default; else configure default -DTESSERA_BENCH_ARCHITECTURES=90a-virtual; fi
    fi
    say "building"
    local start=$SECONDS
    build default
    say "built in $((SECONDS - start)) s"
}

# A CUDA device that works, not only a driver that is installed.
have_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }
