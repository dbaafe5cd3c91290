#!/bin/sh
# Measures the benefit of interrupt mode for a target that computes and its cost for one that polls,
# and prints two tables.
#
#   benches/interrupt/run.sh            under a minute; make bench-interrupt is the same
#   WRITE=1 benches/interrupt/run.sh    also puts the tables into docs/performance.md
#
# ROUNDS is the number of runs, BENCH_CPUS the two processors; the other variables are described
# in ../common.sh.
set -eu

name="interrupt bench" folder=interrupt
. "$(dirname "$0")/../common.sh"
report=$build/tables.md
rounds=${ROUNDS:-5}

need_two_processors
# shellcheck disable=SC2086
"$stage/bin/mpcc_r" $cflags -o "$build/interrupt_bench" "$here/interrupt_bench.c"
load_before=$(load)
for round in $(seq "$rounds"); do
    say "round $round of $rounds"
    timeout 100 "$stage/bin/poe" "$build/interrupt_bench" -n "${SAMPLES:-40}" -p "${PAIRS:-9}" -procs 2 </dev/null >>"$raw"
done
load_after=$(load)

{
    echo "- command: \`make bench-interrupt\`, $rounds runs of ${SAMPLES:-40} samples and ${PAIRS:-9} pairs, $(date -u +%Y-%m-%d)"
    echo "- processor: $(describe_processor)"
    echo "- $(describe_library "$(fingerprint)")"
    echo "- load of the machine before: $load_before, after: $load_after (1, 5 and 15 minutes)"
    [ "${load_before%%.*}" -lt 1 ] || echo "- caution: the machine was busy with other work, and every figure waits for its turn on a processor; only the best ones mean something"
    awk -f "$here/table.awk" "$raw"
} >"$report"
cat "$report"

if [ "${WRITE:-0}" = 1 ]; then
    write_tables interrupt "$report"
fi
