#!/bin/sh
# LAPI_Gfence and Open MPI's MPI_Barrier, set to yield, with fewer and with more tasks than
# processors: a table.
#
#   benches/gfence/run.sh                    about two minutes
#   TASKS="4 16" PAIRS=21 benches/gfence/run.sh
#
# The two take turns in one run, because a machine that does other work as well gives each of them
# another share in each minute. The table has the middle of all, and the middle of the ratios of the
# pairs: below 1, LAPI is faster.
# The other variables are described in ../common.sh.
set -eu

name="gfence bench" folder=gfence
. "$(dirname "$0")/../common.sh"
pairs=${PAIRS:-11}

if ! command -v mpicc.openmpi >/dev/null 2>&1; then
    say "no mpicc.openmpi; ci/deps.sh bench installs it"
    exit 1
fi
# shellcheck disable=SC2086
"$stage/bin/mpcc_r" $cflags -o "$build/lapi" "$here/gfence_bench.c"
# shellcheck disable=SC2086
mpicc.openmpi $cflags -DUSE_MPI -o "$build/openmpi" "$here/gfence_bench.c"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for tasks in ${TASKS:-2 4 8 16}; do
    rounds=$((1600000 / tasks / tasks))
    [ "$tasks" -gt 2 ] || rounds=200000
    for pair in $(seq "$pairs"); do
        lapi=$(timeout -k 5 120 "$stage/bin/poe" "$build/lapi" "$rounds" -procs "$tasks" </dev/null)
        mpi=$(timeout -k 5 120 mpirun.openmpi --mca mpi_yield_when_idle 1 --oversubscribe -np "$tasks" \
            "$build/openmpi" "$rounds" </dev/null)
        echo "$pair $lapi $mpi" >>"$raw"
    done
done

echo "| tasks | LAPI_Gfence, µs | MPI_Barrier, µs | ratio | pairs with a ratio of at most 1 |"
echo "|---:|---:|---:|---:|---:|"
awk '
    function middle(values, count,    sorted, i, j, value) {
        for (i = 1; i <= count; i++) {
            value = values[i]
            for (j = i - 1; j >= 1 && sorted[j] > value; j--) sorted[j + 1] = sorted[j]
            sorted[j + 1] = value
        }
        return count % 2 ? sorted[(count + 1) / 2] : (sorted[count / 2] + sorted[count / 2 + 1]) / 2
    }
    function row(    i) {
        if (!count) return
        good = 0
        for (i = 1; i <= count; i++) good += ratio[i] <= 1
        printf "| %d | %.2f | %.2f | %.2f | %d of %d |\n", tasks, middle(lapi, count), middle(mpi, count), \
            middle(ratio, count), good, count
    }
    $2 != tasks { row(); tasks = $2; count = 0 }
    { count++; lapi[count] = $3; mpi[count] = $5; ratio[count] = $3 / $5 }
    END { row() }
' "$raw"
echo
echo "$(processor), $(nproc) processors, $(mpirun.openmpi --version | head -n 1), load $(load)"
