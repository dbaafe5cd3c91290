#!/usr/bin/env bash
# Compiles two of the samples with the installed wrapper and runs each with two tasks:
# ci/demo.sh PREFIX
set -eu
cd "$(dirname "$0")/.."
prefix=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for sample in Am Put; do
    echo
    echo "== demo: mpcc_r samples/lapi_api/$sample.c -o $sample"
    "$prefix/bin/mpcc_r" "samples/lapi_api/$sample.c" -o "$work/$sample"
    echo "== demo: poe ./$sample -procs 2 -labelio yes"
    (cd "$work" && "$prefix/bin/poe" "./$sample" -procs 2 -labelio yes </dev/null)
done
echo
echo "== demo: Am and Put have each run with 2 tasks"
