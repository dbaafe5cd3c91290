#!/bin/sh
# Each way of long messages within a machine, forced by LAPI_SHM_BULK, beside what the library
# chooses by itself: a table of the chosen one's time by the best one's.
#
#   benches/paths.sh            about a minute; make bench-paths is the same
#   QUICK=1 benches/paths.sh    some seconds, coarser
#   WRITE=1 benches/paths.sh    also puts the table into docs/performance.md
#
# The ways take turns, ROUNDS (7) times. A figure counts only when the cache line took about as long
# before it as after it, and figures of one row are of one distance. BENCH_CPUS is the two
# processors; the other variables are described in common.sh.
set -eu

name="paths bench" folder=paths
. "$(dirname "$0")/common.sh"
report=$build/table.md
rounds=${ROUNDS:-7} tests=am,put_lat,get_lat,am_bw,put_cbw,get_bw sizes=1K,4K,16K,64K,256K,1M,4M few=
[ "${QUICK:-0}" = 0 ] || { rounds=${ROUNDS:-2} sizes=1K,16K,256K,4M few="-n 100"; }

need_two_processors
library=$(fingerprint)
load_before=$(load)
for round in $(seq "$rounds"); do
    say "round $round of $rounds"
    for way in auto pipeline attach; do
        # shellcheck disable=SC2086 # options
        LAPI_SHM_BULK=$way "$stage/bin/poe" -task_affinity "LIST:${BENCH_CPUS:-0,1}" "$stage/bin/lapi_perf" -t $tests -s $sizes $few \
            --check --cache-line -i off -e off --json -procs 2 >"$build/results.json" </dev/null
        awk -f "$here/lapi_perf.awk" "$build/results.json" | awk -v way=$way '{ print way, $0 }' >>"$raw"
    done
done

{
    echo "- command: \`$([ "${QUICK:-0}" = 0 ] || echo "QUICK=1 ")make bench-paths\`, $rounds rounds, $(date -u +%Y-%m-%d)"
    echo "- processor: $(describe_processor)"
    echo "- $(describe_library "$library")"
    echo "- load of the machine before: $load_before, after: $(load) (1, 5 and 15 minutes)"
    awk -f "$here/figures.awk" -f "$here/paths.awk" "$raw"
} >"$report"
cat "$report"
[ "${WRITE:-0}" != 1 ] || write_tables paths "$report"
