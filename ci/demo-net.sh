#!/usr/bin/env bash
# Compiles two of the samples, and runs each with one task on each of two hosts:
# ci/demo-net.sh PREFIX
#
# The hosts are network namespaces of this machine (ci/hosts.sh). poe starts the tasks by MPICH's
# Hydra, which reaches a host by a script in the place of ssh. Where namespaces are not possible,
# both tasks run here, and use the network to talk.
set -eu
cd "$(dirname "$0")/.."
. ci/hosts.sh
prefix=$(cd "$1" && pwd)
# Not below /tmp, which could be another one on the hosts.
work=$(mktemp -d /var/tmp/lapi-demo-net-XXXXXX)
chmod 755 "$work"
cleanup() {
    hosts_end
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

for sample in Am Put; do
    echo
    echo "== demo-net: mpcc_r samples/lapi_api/$sample.c -o $sample"
    "$prefix/bin/mpcc_r" "samples/lapi_api/$sample.c" -o "$work/$sample"
done

if hosts_make "$work"; then
    for sample in Am Put; do
        echo
        echo "== demo-net: on node0: poe ./$sample -hostfile hosts -labelio yes; the hosts: $(paste -sd' ' "$work/hosts")"
        hosts_run 0 env HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC="$work/ssh" \
            sh -c 'cd "$1" && exec "$2/bin/poe" "./$3" -hostfile hosts -launcher hydra -labelio yes' sh "$work" "$prefix" "$sample" \
            </dev/null
    done
    echo
    echo "== demo-net: Am and Put have each run with 2 tasks, on 2 hosts"
else
    echo
    echo "== demo-net: this machine does not let you make network namespaces ($(tail -n 1 "$work/why"))"
    echo "== demo-net: the same two tasks run here, and talk over the loopback"
    for sample in Am Put; do
        echo
        echo "== demo-net: LAPI_USE_SHM=no poe ./$sample -procs 2 -labelio yes"
        (cd "$work" && LAPI_USE_SHM=no "$prefix/bin/poe" "./$sample" -procs 2 -labelio yes </dev/null)
    done
    echo
    echo "== demo-net: Am and Put have each run with 2 tasks, over the loopback"
fi
