#!/bin/sh
# Compares the library with UCX, Intel MPI, MPICH, Open MPI and with the bare machine, and
# prints the tables of docs/performance.md. peers.sh fetches the peers into the build folder:
# once, a minute.
#
#   benches/run.sh            three to six minutes, by how busy the machine is
#   QUICK=1 benches/run.sh    about one minute, coarser
#   WRITE=1 benches/run.sh    also puts the tables into docs/performance.md
#
# ROUNDS is the number of rounds, BENCH_CPUS the two processors; the other variables are
# described in common.sh.
set -eu

name=bench folder=
. "$(dirname "$0")/common.sh"
report=$build/tables.md
if [ "${QUICK:-0}" = 1 ]; then
    rounds=${ROUNDS:-3} ms=5 limit=80 last=90
else
    rounds=${ROUNDS:-7} ms=16 limit=340 last=370
fi
status=0

# The peers: fetched by peers.sh, or else those that are installed. find_peer NAME: sets
# peer_version, peer_includes and peer_folder ("installed": where compilers and launchers look by
# themselves); fails when there is none.
find_peer() {
    # shellcheck disable=SC2046 # words
    set -- "$1" $(grep "^$1 " "$build/peers.txt")
    peer_version=${3:-} peer_folder=${4:-} peer_includes=${5:-}
    [ -z "$peer_version" ] || return 0
    peer_folder=installed
    case $1 in
    ucx)
        peer_version=$(printf '#include <ucp/api/ucp_version.h>\nUCP_API_MAJOR UCP_API_MINOR\n' |
            ${CC:-cc} -E -P -x c - 2>/dev/null | tail -n 1 | tr ' ' .)
        ;;
    mpich) peer_version=$(mpiexec.hydra --version 2>/dev/null | awk '$1 == "Version:" { print $2; exit }') ;;
    ompi) peer_version=$(mpirun.openmpi --version 2>/dev/null | awk '{ print $NF; exit }') ;;
    impi) return 1 ;;
    esac
    [ -n "$peer_version" ]
}

# Builds the program of a peer; its output tells why that has failed.
build_ucx() {
    if [ "$peer_folder" = installed ]; then set --; else set -- "-I$peer_includes" "-L$peer_folder/lib"; fi
    ${CC:-cc} $cflags -o "$build/ucx_bench" "$@" "$root/benches/ucx_bench.c" -lucp -lucs -Wl,--allow-shlib-undefined
}
build_mpi() { # build_mpi NAME
    if [ "$peer_folder" = installed ]; then
        [ "$1" = mpich ] || set -- openmpi
        mpicc."$1" $cflags -o "$build/$mpi" "$root/benches/mpi_bench.c"
        return
    fi
    ${CC:-cc} $cflags -o "$build/$mpi" "-I$peer_includes" "$root/benches/mpi_bench.c" "-L$peer_folder/lib" -lmpi -Wl,--allow-shlib-undefined
}

# Adds the lines of one program to the raw results: measure SYSTEM ROUND COMMAND...
# A program that exceeds the deadline of the run is ended, and its lines are dropped.
measure() {
    system=$1 round=$2
    shift 2
    left=$((last - $(date +%s) + start))
    [ "$left" -ge 1 ] || left=1
    if timeout -k 2 "$left" "$@" >"$build/out.txt" 2>"$build/err.txt" </dev/null; then
        awk -v s="$system" -v r="$round" 'NF == 6 { print s, r, $0 }' "$build/out.txt" >>"$raw"
    else
        say "$system, round $round, failed with status $?:"
        cat "$build/err.txt" >&2
        status=1
    fi
}

need_two_processors
${CC:-cc} $cflags -o "$build/floor" "$root/benches/floor.c"

lapi=no versions= ucx_folder=
if [ -e "$stage/lib/liblapi_r.so" ]; then
    lapi=yes
    library=$(fingerprint)
else
    library="not measured"
    say "NO LIBRARY in $stage (make stage puts it there): only the peer and the machine are measured"
    status=1
fi

"$root/benches/peers.sh" "$build/peers" >"$build/peers.txt"
ucx=no mpis=
for mpi in ucx impi mpich ompi; do
    case $mpi in ucx) title=UCX ;; impi) title="Intel MPI" ;; mpich) title=MPICH ;; ompi) title="Open MPI" ;; esac
    if ! find_peer $mpi; then
        say "NO PEER: $title is neither fetched nor installed; the tables are without it"
        continue
    fi
    version="$title $peer_version$([ "$peer_folder" != installed ] || echo ', as it is installed here')"
    if [ $mpi = ucx ]; then
        build_ucx >"$build/compile.log" 2>&1 && ucx=yes ucx_folder=$peer_folder
    else
        build_mpi $mpi >"$build/compile.log" 2>&1 && mpis="$mpis $mpi" && echo "$peer_folder" >"$build/$mpi.folder"
    fi || { say "NO PEER: its program for $version does not compile:"; cat "$build/compile.log" >&2; continue; }
    versions="${versions:+$versions, }$version"
done
start=$(date +%s)
load_before=$(load)
done_rounds=0 longest=0
for round in $(seq "$rounds"); do
    round_start=$(date +%s)
    # a round that would end too late is not started: a busy machine gives fewer rounds,
    # not a longer run
    if [ $((round_start - start + longest)) -gt "$limit" ]; then
        say "time is up after $done_rounds rounds"
        break
    fi
    say "round $round of $rounds"
    measure floor "$round" "$build/floor" -t "$ms"
    if [ $lapi = yes ]; then
        measure lapi "$round" "$root/benches/lapi.sh" "$stage" off
        measure lapi_check "$round" "$root/benches/lapi.sh" "$stage" off on
    fi
    if [ $ucx = yes ]; then
        [ "$ucx_folder" = installed ] || set -- "LD_LIBRARY_PATH=$ucx_folder/lib:$ucx_folder/lib/ucx" "UCX_MODULE_DIR=$ucx_folder/lib/ucx"
        measure ucx_noattach "$round" env "$@" UCX_TLS=posix,sysv,self "$build/ucx_bench" -t "$ms"
        measure ucx_default "$round" env -u UCX_TLS "$@" "$build/ucx_bench" -t "$ms"
        set --
    fi
    for mpi in $mpis; do
        measure "$mpi" "$round" "$root/benches/mpi.sh" "$mpi" "$(cat "$build/$mpi.folder")" "$build/$mpi" -t "$ms"
    done
    if [ $lapi = yes ]; then
        measure lapi_intr "$round" "$root/benches/lapi.sh" "$stage" on
    fi
    done_rounds=$round
    round_took=$(($(date +%s) - round_start))
    [ "$round_took" -le "$longest" ] || longest=$round_took
done
load_after=$(load)
if [ $lapi = yes ] && [ "$(fingerprint)" != "$library" ]; then
    say "the library in $stage was replaced during the run: these figures belong to no one build and are not reported"
    exit 1
fi

{
    command="make bench"
    [ "${QUICK:-0}" = 1 ] && command="QUICK=1 make bench"
    echo "- command: \`$command\`, $done_rounds rounds, $(date -u +%Y-%m-%d)"
    echo "- processor: $(describe_processor)"
    echo "- kernel $(uname -r | cut -d- -f1), $(${CC:-cc} --version | head -n 1)"
    echo "- $(describe_library "$library"); beside ${versions:-no peer}"
    echo "- load of the machine before: $load_before, after: $load_after (1, 5 and 15 minutes)"
    if [ "$done_rounds" -lt 5 ] || [ "${load_before%%.*}" -ge 1 ]; then
        echo "- caution: fewer than five rounds, or a machine that was busy with other work; figures above 200 µs then hold interruptions and are rough"
    fi
    awk -f "$root/benches/figures.awk" -f "$root/benches/table.awk" "$raw"
} >"$report"
cat "$report"

if [ "${WRITE:-0}" = 1 ] && [ $status != 0 ]; then
    say "something failed above: docs/performance.md stays as it is"
elif [ "${WRITE:-0}" = 1 ]; then
    write_tables tables "$report"
fi
say "took $(($(date +%s) - start)) s; raw results in $raw"
exit $status
