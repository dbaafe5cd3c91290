#!/bin/sh
# Measures the benefit of interrupt mode for a target that computes and its cost for one that polls, and prints two tables.
#
#   benches/interrupt/run.sh            under a minute; make bench-interrupt is the same
#   WRITE=1 benches/interrupt/run.sh    also puts the tables into docs/performance.md
#
# LAPI_STAGE names the installed library (default target/stage), BENCH_BUILD the folder for the program and its raw
# results (default target/bench/interrupt), ROUNDS the number of runs, BENCH_CPUS the two processors.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
stage=${LAPI_STAGE:-$root/target/stage}
build=${BENCH_BUILD:-$root/target/bench/interrupt}
raw=$build/raw.txt
report=$build/tables.md
rounds=${ROUNDS:-5}

say() { echo "interrupt bench: $*" >&2; }

mkdir -p "$build"
: >"$raw"
if [ "$(nproc)" -lt 2 ]; then
    say "two processors are needed"
    exit 1
fi
"$stage/bin/mpcc_r" -O2 -std=gnu11 -Wall -Wextra -o "$build/interrupt_bench" "$here/interrupt_bench.c"
load_before=$(cut -d' ' -f1-3 /proc/loadavg)
for round in $(seq "$rounds"); do
    say "round $round of $rounds"
    timeout 100 "$stage/bin/poe" "$build/interrupt_bench" -n "${SAMPLES:-40}" -p "${PAIRS:-9}" -procs 2 </dev/null >>"$raw"
done
load_after=$(cut -d' ' -f1-3 /proc/loadavg)

{
    echo "- command: \`make bench-interrupt\`, $rounds runs of ${SAMPLES:-40} samples and ${PAIRS:-9} pairs, $(date -u +%Y-%m-%d)"
    echo "- processor: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) in use here$(grep -q '^flags.* hypervisor' /proc/cpuinfo && echo ', in a virtual machine')"
    echo "- tree at $(git -C "$root" describe --always --dirty 2>/dev/null || echo 'no git'), liblapi_r.so with SHA-256 $(sha256sum "$stage/lib/liblapi_r.so" | cut -c1-12)"
    echo "- load of the machine before: $load_before, after: $load_after (1, 5 and 15 minutes)"
    [ "${load_before%%.*}" -lt 1 ] || echo "- caution: the machine was busy with other work, and every figure waits for its turn on a processor; only the best ones mean something"
    awk -f "$here/table.awk" "$raw"
} >"$report"
cat "$report"

if [ "${WRITE:-0}" = 1 ]; then
    page=$root/docs/performance.md
    awk -v report="$report" '
        /^<!-- interrupt: begin -->$/ { print; print ""; while ((getline text < report) > 0) print text; print ""; skip = 1 }
        /^<!-- interrupt: end -->$/ { skip = 0 }
        !skip { print }
    ' "$page" >"$page.new"
    mv "$page.new" "$page"
    say "tables written into docs/performance.md"
fi
