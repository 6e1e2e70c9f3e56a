#!/usr/bin/env bash
# What tessera-emu refuses, in one sentence that names the option and what is allowed, with exit status 2; and what it
# answers. Usage: command_line.sh <tessera-emu> <program> <version> <program with an RPATH>
set -u
emulator=$1
program=$2
version=$3
with_rpath=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# fails <name> <what was got>
fails() {
    printf 'FAILED: %s\n%s\n' "$1" "$2"
    failures=$((failures + 1))
}

# expect <exit status> <text> <command...>: the status, one line on stderr, and the text in it.
expect() {
    local status=$1 text=$2 output got
    shift 2
    output=$("$@" 2>&1 >/dev/null)
    got=$?
    [ "$got" = "$status" ] || fails "$* gives $got, not $status" "$output"
    case $output in
        *"$text"*) ;;
        *) fails "$* does not say: $text" "$output" ;;
    esac
    [ "$(printf '%s\n' "$output" | wc -l)" = 1 ] || fails "$* says more than one line" "$output"
}

# refused <option> <value> <text>: on the command line; as a variable through tessera-emu, and without it.
refused() {
    local option=$1 value=$2 text=$3 name
    name=${option#--}
    name=TESSERA_EMU_$(printf '%s' "$name" | tr 'a-z-' 'A-Z_')
    expect 2 "tessera-emu: $option" "$emulator" "$option" "$value" -- "$program" clean
    expect 2 "$text" "$emulator" "$option=$value" -- "$program" clean
    expect 2 "tessera-emu: $name" env "$name=$value" "$emulator" -- "$program" clean
    expect 2 "$text" env "$name=$value" LD_LIBRARY_PATH="$(dirname "$emulator")/lib" "$program" clean
}

refused --device b100 'b200, b300, thor, h200, h100, a100, a10, l40s, rtx5090, gb10, t4 (did you mean "b200"?)'
refused --schedule chaos 'one of in-order, random, adversarial'
refused --schedule randon '(did you mean "random"?)'
refused --schedule pct:0 'a depth from 1 to 16'
refused --schedule pct:3:no 'steps from 1'
refused --schedule replay: 'replay:FILE'
refused --schedule replay:/no/such/file 'cannot be read: No such file or directory'
refused --record /no/such/folder/schedule 'No such file or directory'
refused --trace /no/such/folder/trace 'No such file or directory'
refused --seed -1 'a whole number from 0'
refused --check 2 '0 or 1'
refused --also same-race 'same-value-race, exit-before-read'
refused --overrun contine '(did you mean "continue"?)'
refused --report xml 'html:FILE'
refused --report html 'html:FILE'
refused --report json:/no/such/folder/report 'No such file or directory'
refused --statistics csv 'json:FILE'
refused --statistics text:/no/such/folder/report 'No such file or directory'
refused --numerics quick 'one of exact, fast'
refused --fail cudaMaloc:3=cudaErrorUnknown '(did you mean "cudaMalloc"?)'
refused --fail cudaMalloc:3=cudaErrorNothing 'there is no error "cudaErrorNothing"'
refused --threads NaN 'a whole number from 0'
refused --hang-limit 0 'a whole number from 1'
expect 2 '0 or 1' "$emulator" --strict=yes -- "$program" clean

expect 2 'did you mean --schedule?' "$emulator" --shedule random -- "$program" clean
expect 2 '--list-devices' "$emulator" --frobnicate -- "$program" clean
expect 2 '--seed needs a value: a whole number' "$emulator" --seed -- "$program" clean
expect 2 '--device needs a value: a device' "$emulator" --device= -- "$program" clean
expect 2 '--seed is given twice' "$emulator" --seed 1 --seed 2 -- "$program" clean
expect 2 'no program is given' "$emulator" --seed 1
expect 127 './no_such_program: not found' "$emulator" -- ./no_such_program
expect 126 "$folder is a folder; name a program in it" "$emulator" -- "$folder"
printf '#!/no/such/interpreter\n' >"$folder/script"
chmod +x "$folder/script"
expect 126 "$folder/script: its interpreter or loader was not found" "$emulator" -- "$folder/script"
misspelled='TESSERA_EMU_SHEDULE is set, which is no variable of the emulated device (did you mean TESSERA_EMU_SCHEDULE?)'
expect 2 "$misspelled" env TESSERA_EMU_SHEDULE=random "$emulator" -- "$program" clean
expect 2 "$misspelled" env TESSERA_EMU_SHEDULE=random LD_LIBRARY_PATH="$(dirname "$emulator")/lib" "$program" clean
expect 2 '--trace: the report is written to the same file' \
    "$emulator" --report "json:$folder/same" --trace "$folder/./same" -- "$program" clean
# Too few addresses for the device: not a crash, nor a machine without a device.
expect 2 'the process may have 1.00 GiB. Raise the limit (ulimit -v)' \
    bash -c 'ulimit -v 1048576; "$@"' limited "$emulator" -- "$program" clean

# The loader would not preload from there: the program would run on the machine's own device, or on none. In front of a blank
# it takes the bare name, unless the program's own path is searched first.
for name in 'a:b' 'a;b' 'a$LIB' 'a b'; do
    mkdir -p "$folder/$name"
    cp "$emulator" "$folder/$name/"
    cp -r "$(dirname "$emulator")/lib" "$folder/$name/"
done
expect 2 "a folder with a ':' in its name" "$folder/a:b/tessera-emu" -- "$program" clean
expect 2 "a folder with a ';' in its name" "$folder/a;b/tessera-emu" -- "$program" clean
expect 2 "a folder with a '\$' in its name" "$folder/a\$LIB/tessera-emu" -- "$program" clean
expect 2 'white space in its name for a program that has an RPATH (/nowhere)' "$folder/a b/tessera-emu" -- "$with_rpath"
said=$("$folder/a b/tessera-emu" -- "$program" leak 2>&1)
grep -q 'resource-leak: 1 device allocation was' <<<"$said" || fails 'a folder with a blank is emulated from, too' "$said"
# A foreign group, or another user: which of these can be made depends on who runs this.
cp "$program" "$folder/set"
if [ "$(id -u)" = 0 ]; then
    chown 65534 "$folder/set" && chmod u+s "$folder/set"
    expect 2 'is a setuid program' "$emulator" -- "$folder/set" clean
else
    for group in $(id -G); do
        [ "$group" = "$(id -g)" ] && continue
        chgrp "$group" "$folder/set" && chmod g+s "$folder/set" || continue
        expect 2 'is a setgid program' "$emulator" -- "$folder/set" clean
        break
    done
fi

# Triton gets a ptxas that keeps its PTX, unless the user has chosen another one.
ptxas=$("$emulator" -- sh -c 'echo "$TRITON_PTXAS_PATH"')
[ "$ptxas" = "$("$emulator" -- sh -c 'echo "$TRITON_PTXAS_BLACKWELL_PATH"')" ] || fails 'two assemblers for Triton' "$ptxas"
said=$(TRITON_PTXAS_PATH=/own "$emulator" -- sh -c 'echo "$TRITON_PTXAS_PATH"')
[ "$said" = /own ] || fails "the user's own ptxas is kept" "$said"
case $("$ptxas" --version) in
    *'release 13.0'*) ;;
    *) fails 'the kept PTX has a version' "$("$ptxas" --version)" ;;
esac
echo '.version 9.0' >"$folder/kernel.ptx"
"$ptxas" -lineinfo -v --opt-level 0 --gpu-name=sm_100a "$folder/kernel.ptx" -o "$folder/kernel.o" || fails 'PTX is kept' "$?"
cmp -s "$folder/kernel.ptx" "$folder/kernel.o" || fails 'PTX is kept as it is' "$(cat "$folder/kernel.o")"
expect 1 'name a file that ends with .ptx' "$ptxas" -v -o "$folder/kernel.o"

# A schedule that was recorded, damaged, and of another program.
"$emulator" --schedule random --record "$folder/schedule" -- "$program" printf >/dev/null || fails 'a run is recorded' "$?"
head -n 2 "$folder/schedule" | tail -n 1 | grep -q '^schedule random 1$' || fails 'the file begins' "$(head -n 3 "$folder/schedule")"
said=$("$emulator" --schedule "replay:$folder/schedule" -- "$program" printf 2>&1) || fails 'a run is repeated' "$said"
expect 2 'the schedule is replayed from a file already' \
    "$emulator" --schedule "replay:$folder/schedule" --record "$folder/again" -- "$program" printf
said=$("$emulator" --schedule "replay:$folder/schedule" -- "$program" trap 2>&1)
[ $? = 2 ] || fails 'a schedule that does not fit gives the status 2' "$said"
case $said in
    *'the recorded schedule does not fit: '"$folder/schedule"' has no launch 1 of '*) ;;
    *) fails 'a schedule of another program' "$said" ;;
esac
head -c -3 "$folder/schedule" >"$folder/cut"
expect 2 "$folder/cut is cut off after line" "$emulator" --schedule "replay:$folder/cut" -- "$program" printf
sed 's/^warp /walk /' "$folder/schedule" >"$folder/damaged"
expect 2 "$folder/damaged is damaged: line " "$emulator" --schedule "replay:$folder/damaged" -- "$program" printf

# Lost output is an error, whatever the program's exit status.
if [ -e /dev/full ]; then
    expect 2 'the report cannot be written to /dev/full: No space left' "$emulator" --report json:/dev/full -- "$program" clean
    expect 2 'the statistics cannot be written to /dev/full: No space left' \
        "$emulator" --statistics text:/dev/full -- "$program" printf
    expect 2 'the schedule cannot be written to /dev/full: No space left' \
        "$emulator" --record /dev/full -- "$program" printf
    expect 2 'the trace cannot be written to /dev/full: No space left' "$emulator" --trace /dev/full -- "$program" printf
fi

# What is written to a pipe cannot be written again with the next finding.
said=$("$emulator" --report json:/dev/stdout -- "$program" leak 2>/dev/null | grep -c '"findings"')
[ "$said" = 1 ] || fails 'a pipe gets one report' "$said"

# What a finding does to a run.
"$emulator" --strict -- "$program" leak >/dev/null 2>&1
[ $? = 86 ] || fails '--strict fails a run with a leak' ''
"$emulator" --check 0 --strict -- "$program" leak >/dev/null 2>&1 || fails '--check 0 looks for no leak' "$?"
said=$("$emulator" --overrun continue -- "$program" overrun 2>&1) || fails '--overrun continue goes on' "$said"
case $said in
    *'tessera-emu: out-of-bounds: '*) ;;
    *) fails '--overrun continue reports the access' "$said" ;;
esac
"$emulator" --overrun stop -- "$program" overrun >/dev/null 2>&1 && fails '--overrun stop ends the launch' ''

# A kernel that waits for more than 10 seconds hangs if it has executed so many instructions.
"$emulator" --hang-limit 1000 -- "$program" wait >"$folder/few" 2>&1 &
few=$!
"$emulator" --hang-limit 1000000000000 -- "$program" wait >"$folder/many" 2>&1 ||
    fails '--hang-limit lets a kernel wait longer' "$(cat "$folder/many")"
wait "$few" && fails '--hang-limit ends a kernel that waits' "$(cat "$folder/few")"
grep -q 'instructions had no visible effect' "$folder/few" || fails '--hang-limit says why' "$(cat "$folder/few")"

# A process without CUDA does not touch the settings and reports of others.
"$emulator" --report "json:$folder/report.json" -- sh -c "\"$program\" leak" >/dev/null 2>&1
grep -q '"kind": "resource-leak"' "$folder/report.json" || fails 'the report of a child is lost' "$(cat "$folder/report.json")"

"$emulator" --report "json:$folder/%p.child" -- sh -c "\"$program\" leak; \"$program\" leak" >/dev/null 2>&1
[ "$(grep -l '"kind": "resource-leak"' "$folder"/*.child | wc -l)" = 2 ] || fails 'each child has a report' "$(ls "$folder")"

[ "$("$emulator" --version)" = "tessera-emu $version" ] || fails 'the version' "$("$emulator" --version)"
"$emulator" --list-devices | grep -q '^h200 .* 9.0 *132 .*139 GiB.*227 KiB' || fails 'the devices' "$("$emulator" --list-devices)"
for option in device schedule record trace seed check also overrun strict report statistics numerics fail threads hang-limit; do
    "$emulator" --help | grep -q -- "--$option " || fails "--help does not name --$option" ''
done
"$emulator" --seed 3 --strict "$program" clean >/dev/null || fails 'without --, the first word is the program' ''

[ "$failures" = 0 ] && echo 'all as documented'
exit "$((failures > 0))"
