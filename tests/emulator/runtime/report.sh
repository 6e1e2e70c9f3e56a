#!/usr/bin/env bash
# The report of findings.cu in a pipe, on a terminal, as JSON and as HTML.
# Usage: report.sh <tessera-emu> <program> <file with the expected text> <1: host lines are known>
set -u
emulator=$1
program=$2
expected=$3
host_lines=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$(dirname "$expected")" || exit 1
failures=0

fails() {
    printf 'FAILED: %s\n' "$1"
    failures=$((failures + 1))
}

# Removes what differs between runs and compilers: addresses, registers, lines of PTX.
normalized() {
    sed -E 's/0x[0-9a-f]{9,}/ADDRESS/g; s/PTX line [0-9]+/PTX line N/; s/%[a-z]+[0-9]+/%r/g; /^  PTX line/d' "$@"
}

# Removes lines that need debug information of host code.
without_host_lines() {
    sed -E '/^ *(launched|called|allocated) /d; s/( x (invalid-operand|resource-leak)) .*/\1/' "$@"
}

command=("$emulator" --device h200 --threads 1)
unset NO_COLOR
"${command[@]}" -- "$program" >"$folder/output" 2>"$folder/text"
status=$?
[ $status = 3 ] || fails "the exit status is the program's own, 3, and not $status"
grep -q cudaErrorIllegalAddress "$folder/output" || fails 'the program goes on to its end'
normalized "$folder/text" >"$folder/normalized"
if [ "$host_lines" = 1 ]; then
    diff -u "$expected" "$folder/normalized" || fails 'the text'
else
    diff -u <(without_host_lines "$expected") <(without_host_lines "$folder/normalized") || fails 'the text'
fi
grep -q "$(printf '\033')" "$folder/text" && fails 'colours in a file'

# A terminal of 72 columns.
if command -v script >/dev/null; then
    TERM=xterm script -qec "stty cols 72; '$emulator' --device h200 --threads 1 -- '$program'" /dev/null \
        </dev/null >"$folder/terminal" 2>/dev/null
    grep -q "$(printf '\033')\[1;33mshared-race" "$folder/terminal" || fails 'no colours on a terminal'
    sed -E 's/\x1b\[[0-9;]*m//g; s/\r//' "$folder/terminal" | awk 'length > 72 { exit 1 }' ||
        fails 'a line is wider than the terminal'
    NO_COLOR=1 TERM=xterm script -qec "'$emulator' --device h200 -- '$program'" /dev/null </dev/null |
        grep -q "$(printf '\033')" && fails 'colours with NO_COLOR'
fi

for format in json html text; do
    "${command[@]}" --report "$format:$folder/report.$format" -- "$program" >/dev/null 2>&1
done
python=$(command -v python3)
if [ -n "$python" ]; then
    "$python" - "$folder/report.json" "$host_lines" <<'PYTHON' || fails 'the JSON report'
import json
import sys

report = json.load(open(sys.argv[1]))
assert report["kinds"] == 6 and len(report["findings"]) == 6, report
by_kind = {finding["kind"]: finding for finding in report["findings"]}
race = by_kind["shared-race"]
assert race["kernel_name"].startswith("reverse<float, 256"), race
assert race["place"]["file"].endswith("/findings.cu") and race["place"]["line"] in (21, 22), race
unwritten = by_kind["uninitialized-global"]
assert (unwritten["instructions"], unwritten["ctas"], unwritten["accesses"]) == (16, 2, 1024), unwritten
if sys.argv[2] == "1":
    assert unwritten["host"][0]["line"] == 44, unwritten
assert report["run"]["devices"] == "h200" and "findings" in report["run"]["command"], report["run"]
PYTHON
fi
grep -q '<article class="card stops">' "$folder/report.html" || fails 'the HTML report marks what stops'
grep -q '<i>29</i>    for (unsigned k = 0; k &lt; 16; ++k) {' "$folder/report.html" || fails 'the HTML report has source'
grep -q 'tessera-emu --device h200 --schedule in-order --seed 1 -- ' "$folder/report.html" || fails 'the command'
grep -q -E '<td><code>copy</code></td><td>1</td><td>2</td>' "$folder/report.html" || fails 'the table of launches'
grep -q -E '(src|href)=|url\(|@import' "$folder/report.html" && fails 'the HTML report needs something else'
grep -q '16 instructions; first by' "$folder/report.text" || fails 'the text file has the counts'

"$emulator" --device t4,h200 --schedule random --seed 9 --also exit-before-read --numerics fast --strict \
    --fail cudaMalloc:9=cudaErrorUnknown --report json -- "$program" 'two words' 2>&1 >/dev/null |
    grep -q -F -- "tessera-emu --device t4,h200 --schedule random --seed 9 --numerics fast --also exit-before-read --fail \
cudaMalloc:9=cudaErrorUnknown --strict -- $program 'two words'" || fails 'the command with all options'

[ "$failures" = 0 ] && echo 'all as documented'
exit "$((failures > 0))"
