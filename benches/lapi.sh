#!/bin/sh
# Measures the patterns of ucx_bench.c by lapi_perf, and prints the lines of bench.h: lapi.sh STAGE
# on|off (INTERRUPT_SET), or of 8 bytes alone, with ERROR_CHK on: lapi.sh STAGE off on
set -eu

stage=$1 interrupt=$2 check=${3:-off}
here=$(cd "$(dirname "$0")" && pwd)
results=$(mktemp)
trap 'rm -f "$results"' EXIT
trap 'exit 1' INT TERM

# TESTS SIZES
measure() {
    "$stage/bin/poe" -task_affinity "LIST:${BENCH_CPUS:-0,1}" "$stage/bin/lapi_perf" -t "$1" -s "$2" --check --cache-line \
        -i "$interrupt" -e "$check" --json -procs 2 >"$results"
    awk -f "$here/lapi_perf.awk" "$results"
}

if [ "$check" = on ]; then
    measure am,put_lat 8
    exit
fi
measure am,amread,amlw,put_seen,put_lat,get_lat,add_lat,gfence 8,64,256,1K,8K,64K,256K,1M,4M
measure am_bw,put_cbw,get_bw 8,1K,8K,64K,1M,4M
