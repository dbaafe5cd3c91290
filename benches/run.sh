#!/bin/sh
# Compares the library with UCX and with the bare machine, and prints the tables of docs/performance.md.
#
#   benches/run.sh            one to four minutes, by how busy the machine is
#   QUICK=1 benches/run.sh    under one minute, coarser
#   WRITE=1 benches/run.sh    also puts the tables into docs/performance.md
#
# ROUNDS is the number of rounds, BENCH_CPUS the two processors; the other variables are described in common.sh.
set -eu

name=bench folder=
. "$(dirname "$0")/common.sh"
report=$build/tables.md
if [ "${QUICK:-0}" = 1 ]; then
    rounds=${ROUNDS:-3} ms=5 limit=50 last=56
else
    rounds=${ROUNDS:-7} ms=16 limit=210 last=230
fi
status=0

# The peer is a Debian package; without it the table has no peer, and has a note.
find_ucx() {
    printf '#include <ucp/api/ucp.h>\n' | ${CC:-cc} -E -x c - >/dev/null 2>&1 && return 0
    say "installing libucx-dev, the peer that the library is measured against"
    if [ "$(id -u)" = 0 ]; then as_root=; else as_root="sudo -n"; fi
    $as_root apt-get install -y -q libucx-dev >"$build/apt.log" 2>&1 ||
        { $as_root apt-get update -q >>"$build/apt.log" 2>&1 && $as_root apt-get install -y -q libucx-dev >>"$build/apt.log" 2>&1; }
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

lapi=no
if [ -e "$stage/lib/liblapi_r.so" ]; then
    lapi=yes
    library=$(fingerprint)
else
    library="not measured"
    say "NO LIBRARY in $stage (make stage puts it there): only the peer and the machine are measured"
    status=1
fi

ucx=no
ucx_version="not measured"
if find_ucx; then
    ${CC:-cc} $cflags -o "$build/ucx_bench" "$root/benches/ucx_bench.c" -lucp -lucs
    ucx=yes
    ucx_version=$(printf '#include <ucp/api/ucp_version.h>\nUCP_API_MAJOR UCP_API_MINOR\n' | ${CC:-cc} -E -P -x c - | tail -n 1 | tr ' ' .)
    package=$(dpkg-query -W -f '${Version}' libucx-dev 2>/dev/null) && ucx_version="$package (libucx-dev)"
else
    say "NO PEER: libucx-dev is neither here nor can it be installed (see $build/apt.log); LAPI stands alone in the tables"
fi

start=$(date +%s)
load_before=$(load)
done_rounds=0 longest=0
for round in $(seq "$rounds"); do
    round_start=$(date +%s)
    # a round that would end too late is not started: a busy machine gives fewer rounds, not a longer run
    if [ $((round_start - start + longest)) -gt "$limit" ]; then
        say "time is up after $done_rounds rounds"
        break
    fi
    say "round $round of $rounds"
    measure floor "$round" "$build/floor" -t "$ms"
    if [ $lapi = yes ]; then
        measure lapi "$round" "$root/benches/lapi.sh" "$stage" off
    fi
    if [ $ucx = yes ]; then
        measure ucx_noattach "$round" env UCX_TLS=posix,sysv,self "$build/ucx_bench" -t "$ms"
        measure ucx_default "$round" env -u UCX_TLS "$build/ucx_bench" -t "$ms"
    fi
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
    echo "- kernel $(uname -r), $(${CC:-cc} --version | head -n 1)"
    echo "- $(describe_library "$library"); UCX: $ucx_version"
    echo "- load of the machine before: $load_before, after: $load_after (1, 5 and 15 minutes)"
    if [ "$done_rounds" -lt 5 ] || [ "${load_before%%.*}" -ge 1 ]; then
        echo "- caution: fewer than five rounds, or a machine that was busy with other work; figures above 200 µs then hold interruptions and are rough"
    fi
    awk -f "$root/benches/table.awk" "$raw"
} >"$report"
cat "$report"

if [ "${WRITE:-0}" = 1 ] && [ $status != 0 ]; then
    say "something failed above: docs/performance.md stays as it is"
elif [ "${WRITE:-0}" = 1 ]; then
    write_tables tables "$report"
fi
say "took $(($(date +%s) - start)) s; raw results in $raw"
exit $status
