#!/usr/bin/env bash
# demo.sh, test.sh and .ci/run ask before they use sudo, and obey the answer. This test brings its own id, sudo and
# apt-get; nothing is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v script >/dev/null || { echo "skipped: script(1), which gives a program a terminal, is not installed"; exit 77; }

folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
printf '#!/bin/sh\necho 1000\n' >"$folder/id"
printf '#!/bin/sh\necho "sudo $*" >>%s/calls\n' "$folder" >"$folder/sudo"
printf '#!/bin/sh\necho "apt-get $*" >>%s/calls\n' "$folder" >"$folder/apt-get"
chmod +x "$folder"/*
export PATH="$folder:$PATH"
unset CI TESSERA_YES

install='set -eu; . .ci/setup.sh; apt_install some-package && echo installed || echo refused'
on_terminal() { script -qec "bash -c '$install'" /dev/null <<<"$1" | tr -d '\r'; }

# check <what> <output> <installed or refused> <asked: yes or no>
check() {
    local calls asked=no
    calls=$(cat "$folder/calls" 2>/dev/null || true)
    rm -f "$folder/calls"
    ! grep -q "Install them with sudo apt-get?" <<<"$2" || asked=yes
    local wanted=''
    [ "$3" = refused ] ||
        wanted=$'sudo apt-get update -qq\nsudo apt-get install -y -qq --no-install-recommends some-package'
    if ! grep -q "$3" <<<"$2" || [ "$asked" != "$4" ] || [ "$calls" != "$wanted" ]; then
        printf 'wrong: %s\noutput: %s\ncalls: %s\n' "$1" "$2" "$calls"
        exit 1
    fi
}

check "no is an answer" "$(on_terminal n)" refused yes
check "yes" "$(on_terminal y)" installed yes
check "return" "$(on_terminal '')" installed yes
check "-y" "$(TESSERA_YES=1 on_terminal n)" installed no
check "CI" "$(CI=true on_terminal n)" installed no
check "no terminal" "$(bash -c "$install" </dev/null)" installed no
