#!/bin/sh
# LAPI_Gfence and MPI_Barrier of Open MPI and of MPICH, which yield, with fewer and with more
# tasks than processors: a table.
#
#   benches/gfence/run.sh            about four minutes; make bench-gfence is the same
#   QUICK=1 benches/gfence/run.sh    half a minute, coarser
#   WRITE=1 benches/gfence/run.sh    also puts the table into docs/performance.md
#   TASKS="4 16" TURNS=21 benches/gfence/run.sh
#
# They take turns in one run, because a machine that does other work as well gives each of them
# another share in each minute. The table has the middle of all times, and the middle of the ratios
# of the turns: below 1, LAPI is faster. The MPIs are those that `make bench` has fetched, or else
# the system's; each yields between two looks. The other variables are described in ../common.sh.
set -eu

name="gfence bench" folder=gfence
. "$(dirname "$0")/../common.sh"
report=$build/table.md
quick=${QUICK:-0} limit=20
[ "$quick" = 0 ] || limit=10

# Builds the program of an MPI: build_mpi mpich|ompi
# shellcheck disable=SC2086 # options
build_mpi() {
    if find_fetched "$1"; then
        ${CC:-cc} $cflags -DUSE_MPI -o "$build/$1" "-I$peer_includes" "$here/gfence_bench.c" "-L$peer_folder/lib" -lmpi \
            -Wl,--allow-shlib-undefined || return
    else
        peer_folder=installed peer_version="of the system"
        "mpicc.${1%ompi}$([ "$1" = mpich ] || echo openmpi)" $cflags -DUSE_MPI -o "$build/$1" "$here/gfence_bench.c" || return
    fi
    echo "$peer_folder" >"$build/$1.folder"
}

# The time of one run, or nothing: turn COMMAND...
turn() { timeout -k 5 "$limit" "$@" 2>"$build/err.txt" </dev/null | awk -v tasks="$tasks" 'NF == 2 && $1 == tasks { print $2 }'; }

need_two_processors
library=$(fingerprint)
# shellcheck disable=SC2086 # options
"$stage/bin/mpcc_r" $cflags -o "$build/lapi" "$here/gfence_bench.c"
mpis='' versions=''
for mpi in ompi mpich; do
    if build_mpi $mpi >"$build/compile.log" 2>&1; then
        mpis="$mpis $mpi"
        versions="$versions, $([ $mpi = ompi ] && echo "Open MPI" || echo MPICH) $peer_version"
    else
        say "NO PEER: $mpi is neither fetched (make bench) nor installed, or its program does not compile: $(tail -n 1 "$build/compile.log")"
    fi
done
[ -n "$mpis" ] || exit 1

load_before=$(load)
for tasks in ${TASKS:-2 4 16}; do
    rounds=$((1600000 / tasks / tasks)) turns=${TURNS:-11}
    [ "$tasks" -gt 2 ] || rounds=200000
    # The processors that the kernel chooses for four tasks change their times by a third.
    [ "$tasks" != 4 ] || turns=${TURNS:-41}
    [ "$quick" = 0 ] || turns=${TURNS:-3} rounds=$((rounds / 4))
    # An MPI that does not end its barriers in time is not asked again.
    slow=
    for turn in $(seq "$turns"); do
        echo "$tasks $turn lapi $(turn "$stage/bin/poe" "$build/lapi" "$rounds" -procs "$tasks")" >>"$raw"
        for mpi in $mpis; do
            case " $slow " in *" $mpi "*) continue ;; esac
            time=$(TASKS=$tasks YIELD=yes turn "$root/benches/mpi.sh" "$mpi" "$(cat "$build/$mpi.folder")" "$build/$mpi" "$rounds")
            echo "$tasks $turn $mpi $time" >>"$raw"
            [ -n "$time" ] || { slow="$slow $mpi" && say "no time of $mpi for $rounds barriers of $tasks tasks within $limit s: $(tail -n 1 "$build/err.txt")"; }
        done
    done
done

{
    echo "- command: \`$([ "$quick" = 0 ] || echo "QUICK=1 ")make bench-gfence\`, $(date -u +%Y-%m-%d)"
    echo "- processor: $(describe_processor)"
    echo "- $(describe_library "$library")$versions"
    echo "- load of the machine before: $load_before, after: $(load) (1, 5 and 15 minutes)"
    echo
    echo "| tasks | turns | LAPI_Gfence, µs | Open MPI, µs | MPICH, µs | LAPI / Open MPI | LAPI / MPICH |"
    echo "|---:|---:|---:|---:|---:|---:|---:|"
    awk '
        function middle(values, key, count,    sorted, i, j, value) {
            if (!count) return -1
            for (i = 1; i <= count; i++) {
                value = values[key, i]
                for (j = i - 1; j >= 1 && sorted[j] > value; j--) sorted[j + 1] = sorted[j]
                sorted[j + 1] = value
            }
            return count % 2 ? sorted[(count + 1) / 2] : (sorted[count / 2] + sorted[count / 2 + 1]) / 2
        }
        function show(value) { return value < 0 ? "-" : sprintf("%.2f", value) }
        function row() {
            if (!tasks) return
            printf "| %d | %d | %s | %s | %s | %s | %s |\n", tasks, times["lapi"], show(middle(time, "lapi", times["lapi"])), \
                show(middle(time, "ompi", times["ompi"])), show(middle(time, "mpich", times["mpich"])), \
                show(middle(ratio, "ompi", ratios["ompi"])), show(middle(ratio, "mpich", ratios["mpich"]))
            split("", times); split("", ratios)
        }
        $1 != tasks { row(); tasks = $1 }
        $3 == "lapi" { ours = NF == 4 ? $4 : -1 }
        NF != 4 { next }
        { time[$3, ++times[$3]] = $4 }
        $3 != "lapi" && ours > 0 { ratio[$3, ++ratios[$3]] = ours / $4 }
        END { row() }
    ' "$raw"
} >"$report"
cat "$report"
[ "${WRITE:-0}" != 1 ] || write_tables gfence "$report"
