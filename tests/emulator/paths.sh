#!/bin/sh
# The fast path of memory accesses, the plain one, and both compared give the same result and the same findings.
# Usage: paths.sh TESSERA_EMU OUTPUT PROGRAM [ARGUMENT...]; the program writes OUTPUT, unless it is "-".
set -u
emulator=$1
output=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for paths in fast plain both; do
    [ "$output" = - ] || rm -f "$output"
    "$emulator" --paths "$paths" --report "json:$folder/$paths.json" -- "$@" > "$folder/$paths.text" 2>&1
    echo "exit status $?" >> "$folder/$paths.text"
    [ "$output" = - ] || cat "$output" >> "$folder/$paths.text" || exit 1
    # The command and the options may differ, what was found must not.
    sed '/"run": {/,/}/d' "$folder/$paths.json" > "$folder/$paths.findings"
    for kind in text findings; do
        if ! cmp "$folder/fast.$kind" "$folder/$paths.$kind"; then
            echo "FAILED: --paths $paths differs from --paths fast:" >&2
            diff -a "$folder/fast.$kind" "$folder/$paths.$kind" | head -20 >&2
            exit 1
        fi
    done
done
if grep -q "exit status [^0]" "$folder/fast.text"; then
    cat "$folder/fast.text" >&2
    exit 1
fi
