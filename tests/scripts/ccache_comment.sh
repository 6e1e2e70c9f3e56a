#!/usr/bin/env bash
# A changed comment in a header must not bring an old precompiled header back from ccache: the compiler would then see
# that header twice. $1: the folder to work in, $2: a C++ compiler, the rest: how the build calls ccache.
set -euo pipefail
work=$1 compiler=$2
shift 2
rm -rf "$work"
mkdir -p "$work"
cd "$work"
export CCACHE_DIR=$work/cache
printf '#include "header.hpp"\n' >all.hpp
for comment in one two; do
    printf '#pragma once\n// %s\nstruct Once {};\n' $comment >header.hpp
    touch -d '1 hour ago' header.hpp  # ccache takes no file that was just written into account
    rm -f all.hpp.gch
    "$@" "$compiler" -x c++-header -c all.hpp -o all.hpp.gch
    printf '#include "header.hpp"\nOnce %s;\n' $comment >source.cpp
    "$@" "$compiler" -Winvalid-pch -Werror -include "$work/all.hpp" -c source.cpp -o source.o
done
