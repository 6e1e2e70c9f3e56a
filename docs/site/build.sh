#!/usr/bin/env bash
# Builds the documentation site: the Markdown pages of the repository and the reference of the public headers.
# Any warning is an error. Needs Python 3.11 or later with venv, and Doxygen; the Python packages of requirements.txt are
# installed into the output folder once, after which no network is needed.
#
# With Chromium, the course is also printed as a PDF: html/blackwell-course.pdf.
#
# Usage: docs/site/build.sh [--draft | --comments | --check] [<output folder>]      (default: build/site)
#   --draft     while you write: warnings do not fail the build; what is broken is left out
#   --comments  only the headers' comments: does Doxygen understand them, and is every declaration in a group
#   --check     then test the site in Chromium (check.py), and the test itself
# TESSERA_SITE_PYTHON: a Python that has the packages of requirements.txt (and of check-requirements.txt)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

mode=
case ${1:-} in
    --draft | --comments | --check)
        mode=${1#--}
        shift
        ;;
    -h | --help)
        sed -n '2,/^set/{/^set/d;s/^# \?//;p}' "$0"
        exit
        ;;
esac
out=${1:-$root/build/site}
mkdir -p "$out"
out=$(cd "$out" && pwd)

fail() {
    printf 'docs/site/build.sh: %s\n' "$*" >&2
    exit 1
}
command -v doxygen >/dev/null || fail "doxygen is not installed"

number() { sed -n "s/^#define TESSERA_VERSION_$1 //p" "$root/sdk/include/tessera/version.hpp"; }
version=$(number MAJOR).$(number MINOR).$(number PATCH)
rm -rf "$out/doxygen"
mkdir -p "$out/doxygen"
sed -e "s#@ROOT@#$root#g" -e "s#@OUT@#$out/doxygen#g" -e "s#@VERSION@#$version#g" "$here/Doxyfile.in" >"$out/doxygen/Doxyfile"
doxygen "$out/doxygen/Doxyfile" || [ "$mode" = draft ] || fail "Doxygen does not accept the headers' comments"
python3 "$here/reference.py" ${mode:+"--$mode"} "$out/doxygen/xml" "$out/xml" "$out/pages/reference"
[ "$mode" != comments ] || exit 0

# packages <requirements file>: makes the Python environment, or leaves it if it is that of this file.
packages() {
    [ -z "${TESSERA_SITE_PYTHON:-}" ] || return 0
    local stamp
    stamp=$out/venv/$(basename "$1").$(sha256sum "$1" | cut -c 1-16)
    [ ! -e "$stamp" ] || return 0
    [ -x "$out/venv/bin/python" ] || python3 -m venv "$out/venv"
    "$out/venv/bin/pip" install -q --disable-pip-version-check --require-hashes -r "$1" ||
        fail "the Python packages of $1 could not be installed"
    touch "$stamp"
}
packages "$here/requirements.txt"
python=${TESSERA_SITE_PYTHON:-$out/venv/bin/python}

# The course as one PDF, where there is a browser to print it.
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ "$mode" != draft ] || browser=
python3 "$here/stage.py" ${browser:+--pdf} "$root" "$out/pages" || [ "$mode" = draft ] || fail "links of the pages are broken"
strict=(-W --keep-going)
[ "$mode" != draft ] || strict=()
# A link is resolved when its page is made: where pages or declarations come or go, all are made again.
(cd "$out/pages" && find . -type f | sort && head -n 1 reference/Gemm.rst) >"$out/pages.new"
cmp -s "$out/pages.new" "$out/pages.list" || rm -rf "$out/doctrees"
mv "$out/pages.new" "$out/pages.list"
TESSERA_SITE_VERSION=$version TESSERA_SITE_XML=$out/xml \
    "$python" -m sphinx -q -j auto -c "$here" -d "$out/doctrees" "${strict[@]}" "$out/pages" "$out/html" ||
    fail "the site has warnings"
[ "$mode" = draft ] || python3 "$here/check_symbols.py" "$out/doxygen/xml" "$out/html" || fail "the reference is not complete"
if [ -n "$browser" ]; then
    "$browser" --headless --no-sandbox --disable-gpu --no-pdf-header-footer --print-to-pdf="$out/html/blackwell-course.pdf" \
        "file://$out/html/course-print.html" >"$out/print.log" 2>&1 || { cat "$out/print.log" >&2 && fail "the course cannot be printed"; }
fi
printf 'The site: %s\n' "$out/html/index.html"

if [ "$mode" = check ]; then
    packages "$here/check-requirements.txt"
    "$python" "$here/check.py" "$out/html"
    "$python" "$here/check.py" --self-test "$out/html"
fi
