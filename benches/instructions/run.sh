#!/bin/sh
# Counts the instructions of an 8-byte LAPI_Put, LAPI_Amsend and LAPI_Get at their origin, of a
# LAPI_Probe and a LAPI_Getcntr that find nothing, of a LAPI_Waitcntr that is satisfied, of one that
# takes one put, active message or reply to a get, of a LAPI_Probe that serves a get, and of a
# LAPI_Gfence in the task that comes last, with callgrind, which repeats its counts where times do
# not. CALLS (2000) is the number of calls; the other variables are described in ../common.sh.
set -eu

name=instructions folder=instructions
. "$(dirname "$0")/../common.sh"
calls=${CALLS:-2000}
command -v valgrind >/dev/null || { say "no valgrind; ci/deps.sh instructions installs it"; exit 1; }
# shellcheck disable=SC2086
"$stage/bin/mpcc_r" $cflags "$here/instructions.c" -o "$build/instructions"
# Only task 0 runs under valgrind; the warm-up of 100 calls is part of the count.
cat >"$build/task.sh" <<SCRIPT
if [ "\$MP_CHILD" = 0 ]; then
    exec valgrind --tool=callgrind --toggle-collect='measured*' --callgrind-out-file="$build/out.\$1" "$build/instructions" "\$@"
fi
exec "$build/instructions" "\$@"
SCRIPT
# The least of several runs: a target that was not running meanwhile lets messages wait,
# which costs more.
for what in put amsend get self probe getcntr satisfied put-arrives amsend-arrives get-arrives reply-arrives gfence; do
    # Where the target counts as one that does not poll, a get would be a copy by the kernel.
    case $what in get | *-arrives) LAPI_SHM_BULK=pipeline; export LAPI_SHM_BULK ;; *) unset LAPI_SHM_BULK ;; esac
    least=
    for _ in 1 2 3 4 5; do
        rm -f "$build/out.$what" "$build/turns"
        MP_INFOLEVEL=0 LAPI_SPIN=100000000 timeout 300 "$stage/bin/poe" sh "$build/task.sh" "$what" "$calls" "$build/turns" -procs 2 \
            >"$build/log.$what" 2>&1 || { cat "$build/log.$what" >&2; exit 1; }
        total=$(sed -n 's/^summary: *\([0-9]*\).*/\1/p;s/^totals: *\([0-9]*\).*/\1/p' "$build/out.$what" | head -n 1)
        each=$((total / (calls + 100)))
        if [ -z "$least" ] || [ "$each" -lt "$least" ]; then least=$each; fi
    done
    echo "$what: $least instructions a call"
done
