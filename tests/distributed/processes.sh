#!/bin/sh
# Starts a program as ranks of their own processes, as torchrun does, and compares their exit codes.
# Usage: processes.sh RANKS "CODES" PROGRAM [ARGUMENT...]; "any" is any code.
set -u
ranks=$1
codes=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export WORLD_SIZE="$ranks" TESSERA_BOOTSTRAP_FILE="$folder/meeting"
pids=
rank=0
while [ "$rank" -lt "$ranks" ]; do
    RANK=$rank LOCAL_RANK=$rank "$@" &
    pids="$pids $!"
    rank=$((rank + 1))
done
failed=0
for pid in $pids; do
    wait "$pid"
    code=$?
    wanted=${codes%% *}
    codes=${codes#* }
    if [ "$wanted" != any ] && [ "$code" -ne "$wanted" ]; then
        echo "a rank ended with $code instead of $wanted"
        failed=1
    fi
done
exit $failed
