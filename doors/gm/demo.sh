#!/usr/bin/env bash
# The samples, compiled with an installation: demo.sh PREFIX. Messages between processes: of a job,
# where poe is, and in any case of two that are started by hand.
set -eu
work=$(mktemp -d)
server=
leave() {
    if [ -n "$server" ]; then kill "$server"; fi
    rm -rf "$work"
}
trap leave EXIT
cd "$(dirname "$0")"
read -ra flags < <(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --cflags --libs gm)
compile() { cc "samples/$1.c" -o "$work/$1" "${flags[@]}"; }
for sample in ring alltoall; do
    compile $sample
    if command -v poe >/dev/null; then poe "$work/$sample" -procs 3; else "$work/$sample"; fi
done
compile echo
printf '%s\n' "1 here unix:$work/1" "2 here unix:$work/2" >"$work/map"
export LAPI_GM_MAP=$work/map
LAPI_GM_NODE=1 "$work/echo" >"$work/serves" &
server=$!
# The line comes when the server has a port.
for _ in $(seq 600); do
    if [ -s "$work/serves" ]; then break; fi
    sleep 0.1
done
LAPI_GM_NODE=2 "$work/echo" "by hand"
unset LAPI_GM_MAP
"$1/bin/gm_board_info"
