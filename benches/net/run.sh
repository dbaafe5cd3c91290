#!/usr/bin/env bash
# Two tasks on two hosts, which are network namespaces of this machine: LAPI beside libfabric itself
# on the same provider, beside fi_pingpong where it is installed, and beside MPICH and Open MPI on
# the same link (those that `make bench` has fetched, or else the system's); LAPI over UDP beside
# datagrams and TCP, and, where 1 % of the datagrams are lost, beside libfabric's udp;ofi_rxd.
# Prints the tables of docs/performance.md.
#
#   benches/net/run.sh            about 20 s for each round
#   QUICK=1 benches/net/run.sh    one round, coarser
#   MORE=1 benches/net/run.sh     adds its rounds to the results of the run before
#   WRITE=1 benches/net/run.sh    also puts the tables into docs/performance.md
#
# ROUNDS is the number of rounds (5), ONLY the beginning of a pattern's name, SYSTEMS some of "raw
# lapi lapi_bulk mpich openmpi pingpong sockets udp lossy_udp lossy_rxd", PROVIDER libfabric's
# provider (tcp;ofi_rxm). The other variables are described in ../common.sh.
set -eu

name="net bench" folder=net
[ "${MORE:-0}" = 0 ] || old_results=$(cat "${BENCH_BUILD:-$(dirname "$0")/../../target/bench/net}/raw.txt")
. "$(dirname "$0")/../common.sh"
[ "${MORE:-0}" = 0 ] || echo "$old_results" >"$raw"
. "$root/ci/hosts.sh"
report=$build/tables.md
rounds=${ROUNDS:-5} ms=20
[ "${QUICK:-0}" = 0 ] || { rounds=1 ms=8; }
provider=${PROVIDER:-tcp;ofi_rxm}
systems=${SYSTEMS:-raw lapi lapi_bulk mpich openmpi pingpong sockets udp lossy_udp lossy_rxd}
first=$(awk '$2 > most { most = $2 } END { print most + 1 }' "$raw")
status=0

# Not below /tmp, which could be another one on the hosts.
work=$(mktemp -d /var/tmp/lapi-bench-net-XXXXXX)
cleanup() {
    hosts_end
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

has() { case " $systems " in *" $1 "*) ;; *) return 1 ;; esac }
drop() { # drop SYSTEM WHY
    say "not measured: $1: $2"
    systems=$(echo " $systems " | sed "s/ $1 / /")
}

declare -A mpi_folder=() mpi_version=()
# shellcheck disable=SC2086 # options
build_mpi() { # build_mpi mpich|openmpi
    local package=libmpich12
    if find_fetched "${1/openmpi/ompi}"; then
        mpi_folder[$1]=$peer_folder mpi_version[$1]=$peer_version
        ${CC:-cc} $cflags "-I$peer_includes" -o "$build/$1" "$here/mpi.c" "$here/net_bench.c" "-L$peer_folder/lib" -lmpi \
            -Wl,--allow-shlib-undefined
    else
        [ "$1" = mpich ] || package=libopenmpi3
        mpi_version[$1]=$(dpkg-query -W -f '${Version}' $package 2>/dev/null || echo -)
        "mpicc.$1" $cflags -o "$build/$1" "$here/mpi.c" "$here/net_bench.c"
    fi
}

need_two_processors
# shellcheck disable=SC2086 # options
{
    "$stage/bin/mpcc_r" $cflags -o "$build/lapi" "$here/lapi.c" "$here/net_bench.c"
    ${CC:-cc} $cflags -o "$build/sockets" "$here/sockets.c" "$here/net_bench.c"
    if has raw || has lossy_rxd; then
        ${CC:-cc} $cflags -o "$build/raw" "$here/raw.c" "$here/net_bench.c" -lfabric ||
            { drop raw "libfabric-dev is not installed"; drop lossy_rxd "libfabric-dev is not installed"; }
    fi
    for mpi in mpich openmpi; do
        ! has $mpi || build_mpi $mpi || drop $mpi "neither fetched (make bench) nor installed, or its program does not compile"
    done
}
! has pingpong || command -v fi_pingpong >/dev/null || drop pingpong "fi_pingpong (libfabric-bin) is not installed"
hosts_make "$work" || { say "this machine does not let you make network namespaces: $(tail -n 1 "$work/why")"; exit 1; }

options="-t $ms${ONLY:+ -o $ONLY}"
launched() { # launched COMMAND...: on node0, with the variables of the launchers
    hosts_run 0 env HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC="$work/ssh" OMPI_MCA_plm_rsh_agent="$work/ssh" \
        PRTE_MCA_plm_ssh_agent="$work/ssh" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$@"
}
mpi_launched() { # mpi_launched mpich|openmpi VARIABLE=VALUE... -- ARGUMENT...: by its launcher
    local at=${mpi_folder[$1]-} launcher=mpiexec.hydra variables=()
    [ "$1" = mpich ] || launcher=mpirun.openmpi
    if [ -n "$at" ]; then
        variables=("LD_LIBRARY_PATH=$at/lib" "PATH=$at/bin:$PATH" "OPAL_PREFIX=$at")
        launcher=$at/bin/${launcher%.openmpi}
    fi
    shift
    while [ "$1" != -- ]; do variables+=("$1"); shift; done
    shift
    launched env "${variables[@]}" "$launcher" "$@"
}

both() { # both VARIABLE PROGRAM OPTION...: on both hosts; VARIABLE_RANK is the process, VARIABLE_PEER the address of the other one
    local name=$1
    shift
    hosts_run 1 env "${name}_RANK=1" "${name}_PEER=10.78.0.1" "$@" &
    local other=$!
    if ! hosts_run 0 env "${name}_RANK=0" "${name}_PEER=10.78.0.2" "$@"; then
        hosts_clear                               # the other one waits for the one that has failed
        return 1
    fi
    wait "$other"
}
raw() { # raw PROVIDER OPTION...
    rm -f "$work"/raw?
    both RAW env RAW_PROVIDER="$1" RAW_DOMAIN=rail0 RAW_FOLDER="$work" "$build/raw" "${@:2}"
}
lapi() { # lapi VARIABLE=VALUE... -- OPTION...
    local variables=()
    while [ "$1" != -- ]; do variables+=("$1"); shift; done
    shift
    launched env "${variables[@]}" "$stage/bin/poe" "$build/lapi" "$@" -hostfile "$work/hosts" -launcher hydra -infolevel 0
}
lossy() { # lossy COMMAND...: with 1 % of the datagrams lost, for each of some sizes
    local size status=0
    hosts_lose 1 || return 1
    for size in 4096 65536 1048576; do "$@" -t $ms -o message_stream -s $size || status=1; done
    hosts_lose 0
    return $status
}

# shellcheck disable=SC2086 # options
run_system() {
    case $1 in
    raw) raw "$provider" $options ;;
    lapi) lapi LAPI_FABRIC_PROVIDER="$provider" MP_USE_BULK_XFER=no -- $options ;;
    lapi_bulk) lapi LAPI_FABRIC_PROVIDER="$provider" MP_USE_BULK_XFER=yes MP_BULK_MIN_MSG_SIZE=64K -- $options ;;
    sockets) both SOCKETS "$build/sockets" $options ;;
    udp) lapi MP_EUILIB=ip -- $options ;;
    lossy_udp) lossy lapi MP_EUILIB=ip -- ;;
    lossy_rxd) lossy raw "udp;ofi_rxd" ;;
    # By the network only: UCX would find that both processes are on one machine. An MPICH has
    # UCX or libfabric.
    mpich)
        mpi_launched mpich UCX_TLS=tcp,self FI_PROVIDER=tcp FI_TCP_IFACE=rail0 -- \
            -hosts node0,node1 -ppn 1 -n 2 "$build/mpich" $options
        ;;
    openmpi)
        # One-sided calls without a card that has RDMA: what is fetched, 5.0, has them by TCP alone,
        # 4.1 has others beside those by RDMA.
        local one_sided="--mca osc ^rdma -x UCX_TLS=tcp,self"
        [ -z "${mpi_folder[openmpi]-}" ] || one_sided="--mca pml ob1"
        mpi_launched openmpi -- --host node0,node1 --bind-to none --mca btl tcp,self --mca btl_tcp_if_include rail0 \
            $one_sided -n 2 "$build/openmpi" $options
        ;;
    pingpong)
        for size in 8 64 512 4096 16384 65536 262144 1048576; do
            hosts_run 1 fi_pingpong -p "$provider" -e rdm -d rail0 -I 200 -S $size >/dev/null &
            for _ in $(seq 100); do
                hosts_run 1 sh -c 'grep -qi ":BAE5 .* 0A " /proc/net/tcp /proc/net/tcp6' && break
                sleep 0.02
            done
            hosts_run 0 fi_pingpong -p "$provider" -e rdm -d rail0 -I 200 -S $size 10.78.0.2 |
                awk -v size=$size '$1 ~ /^[0-9]/ { print "message", size, $7 }'
            wait $! || true
        done
        ;;
    esac
}

# Adds the lines of one system to the raw results. LAPI must not fail, nor exceed its time. A peer
# may, and has no lines of that round then.
measure() {
    local system=$1 round=$2 job left
    run_system "$system" >"$build/out.txt" 2>"$build/err.txt" </dev/null &
    job=$!
    left=1200                                 # tenths of a second
    while kill -0 $job 2>/dev/null && [ $((left -= 1)) -gt 0 ]; do sleep 0.1; done
    if [ "$left" -gt 0 ] && wait $job; then
        awk -v s="$system" -v r="$round" 'NF == 3 { print s, r, $0 }' "$build/out.txt" >>"$raw"
    else
        say "$system, round $round, failed:"
        cat "$build/err.txt" >&2
        [[ $system != *lapi* && $system != *udp ]] || exit 1
        kill $job 2>/dev/null || true
        hosts_clear
        hosts_lose 0
    fi
}

start=$(date +%s)
library=$(fingerprint)
load_before=$(load)
for round in $(seq "$first" $((first + rounds - 1))); do
    for system in $systems; do
        say "round $round: $system"
        measure "$system" "$round"
    done
done
load_after=$(load)
[ "$(fingerprint)" = "$library" ] || { say "the library in $stage was replaced during the run"; exit 1; }

done_rounds=$(awk '$2 > most { most = $2 } END { print most + 0 }' "$raw")
{
    echo "- command: \`make bench-net\`, $done_rounds rounds, $(date -u +%Y-%m-%d); provider $provider between two network namespaces (veth)"
    echo "- processor: $(describe_processor)"
    echo "- kernel $(uname -r), $(${CC:-cc} --version | head -n 1)"
    echo "- $(describe_library "$library")"
    echo "- libfabric $(dpkg-query -W -f '${Version}' libfabric1 2>/dev/null || echo unknown), MPICH ${mpi_version[mpich]--}, Open MPI ${mpi_version[openmpi]--}"
    echo "- load of the machine before: $load_before, after: $load_after (1, 5 and 15 minutes)"
    if [ "$done_rounds" -lt 5 ] || [ "${load_before%%.*}" -ge 1 ]; then
        echo "- caution: fewer than five rounds, or a machine that was busy with other work: compare within a row only"
    fi
    awk -f "$here/table.awk" "$raw"
} >"$report"
cat "$report"
if [ "${WRITE:-0}" = 1 ]; then write_tables net "$report"; fi
say "took $(($(date +%s) - start)) s; raw results in $raw"
exit $status
