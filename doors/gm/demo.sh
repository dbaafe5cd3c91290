#!/usr/bin/env bash
# The samples, compiled with an installation: demo.sh PREFIX. Without a launcher each has one task.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$(dirname "$0")"
for sample in ring alltoall; do
    cc -I"$1/include" samples/$sample.c -o "$work/$sample" -L"$1/lib" -Wl,-rpath,"$1/lib" -lgm
    if command -v poe >/dev/null; then poe "$work/$sample" -procs 3; else "$work/$sample"; fi
done
"$1/bin/gm_board_info"
