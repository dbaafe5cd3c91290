#!/usr/bin/env bash
# Counts the instructions of an 8-byte LAPI_Put and LAPI_Amsend at their origin, with callgrind, which repeats its counts where
# times do not. LAPI_STAGE names the installation; CALLS (2000) how many calls are counted.
set -eu
cd "$(dirname "$0")"
build=${BENCH_BUILD:-../../target/bench/instructions}
calls=${CALLS:-2000}
mkdir -p "$build"
build=$(cd "$build" && pwd)
command -v valgrind >/dev/null || { echo "instructions: there is no valgrind here (ci/deps.sh instructions)" >&2; exit 1; }
"$LAPI_STAGE/bin/mpcc_r" -O2 instructions.c -o "$build/instructions"
# Only task 0 runs under valgrind; the warm-up of 100 calls is part of the count.
cat >"$build/task.sh" <<SCRIPT
if [ "\$MP_CHILD" = 0 ]; then
    exec valgrind --tool=callgrind --toggle-collect=measured --callgrind-out-file="$build/out.\$1" "$build/instructions" "\$@"
fi
exec "$build/instructions" "\$@"
SCRIPT
# The least of several runs: a target that was not running meanwhile lets messages wait, which costs more.
for what in put amsend self; do
    least=
    for _ in 1 2 3 4 5; do
        rm -f "$build/out.$what"
        MP_INFOLEVEL=0 LAPI_SPIN=100000000 timeout 300 "$LAPI_STAGE/bin/poe" sh "$build/task.sh" "$what" "$calls" -procs 2 \
            >"$build/log.$what" 2>&1 || { cat "$build/log.$what" >&2; exit 1; }
        total=$(sed -n 's/^summary: *\([0-9]*\).*/\1/p;s/^totals: *\([0-9]*\).*/\1/p' "$build/out.$what" | head -n 1)
        each=$((total / (calls + 100)))
        if [ -z "$least" ] || [ "$each" -lt "$least" ]; then least=$each; fi
    done
    echo "$what: $least instructions a call"
done
