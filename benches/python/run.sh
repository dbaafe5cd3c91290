#!/bin/sh
# A put of 8 bytes from Python, by openlapi and by mpi4py with Open MPI: a table. Open MPI is the
# one that `make bench` has fetched, or else the system's.
#
#   benches/python/run.sh                 about two minutes
#   PAIRS=21 benches/python/run.sh
#
# The two take turns in one run, because a machine that does other work as well gives each of them
# another share in each minute. The table has the middle of all, and the middle of the ratios of the
# pairs: below 1, openlapi is faster.
# WRITE=1 also puts the table into docs/performance.md. pip gets mpi4py and numpy. The other
# variables are described in ../common.sh.
set -eu

name="python bench" folder=python
. "$(dirname "$0")/../common.sh"
pairs=${PAIRS:-11}
need_two_processors
# The words with which Open MPI's launcher begins. mpi4py finds libmpi.so.40 as any program does.
if find_fetched ompi; then
    set -- env "LD_LIBRARY_PATH=$peer_folder/lib" "OPAL_PREFIX=$peer_folder" "$peer_folder/bin/mpirun"
elif command -v mpirun.openmpi >/dev/null 2>&1; then
    set -- mpirun.openmpi
else
    say "no Open MPI: make bench fetches it, ci/deps.sh bench-net installs Debian's"
    exit 1
fi
cd "$root"
ci/wheel.sh >&2
ci/venv.sh "$build/venv" numpy mpi4py >&2
wheels=$(realpath -m "${CARGO_TARGET_DIR:-target}")/wheel
"$build/venv/bin/pip" --disable-pip-version-check install --quiet --no-deps --no-index --force-reinstall "$wheels"/*.whl
python=$build/venv/bin/python
PATH=$stage/bin:$PATH
# Open MPI refuses root otherwise.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PYTHONDONTWRITEBYTECODE=1
before=$(load)
for pair in $(seq "$pairs"); do
    timeout -k 5 120 poe "$python" "$here/put.py" lapi -procs 2 </dev/null | sed "s/^/$pair	lapi	/" >>"$raw"
    timeout -k 5 120 "$@" -np 2 "$python" "$here/put.py" mpi </dev/null | sed "s/^/$pair	mpi	/" >>"$raw"
done

report=$build/report.md
{
    echo "- command: \`benches/python/run.sh\`, $pairs pairs, $(date +%Y-%m-%d)"
    echo "- processor: $(describe_processor)"
    echo "- $("$python" --version), mpi4py $("$python" -c 'import mpi4py; print(mpi4py.__version__)'), $("$@" --version | head -n 1)"
    echo "- $(describe_library "$(fingerprint)")"
    echo "- load of the machine before: $before, after: $(load) (1, 5 and 15 minutes)"
    echo
    echo "| puts of 8 bytes | memory of mpi4py's window | openlapi, µs | mpi4py, µs | ratio | pairs with a ratio of at most 1.5 |"
    echo "|---|---|---:|---:|---:|---:|"
    awk -F '\t' '
        function middle(values, count,    sorted, i, j, value) {
            for (i = 1; i <= count; i++) {
                value = values[i]
                for (j = i - 1; j >= 1 && sorted[j] > value; j--) sorted[j + 1] = sorted[j]
                sorted[j + 1] = value
            }
            return count % 2 ? sorted[(count + 1) / 2] : (sorted[count / 2] + sorted[count / 2 + 1]) / 2
        }
        function row(what, kind, words,    count, good, pair, ours, theirs, ratios) {
            for (pair = 1; pair <= pairs; pair++) {
                if (!((pair, "lapi", what, "own") in time) || !((pair, "mpi", what, kind) in time)) continue
                ours[++count] = time[pair, "lapi", what, "own"]
                theirs[count] = time[pair, "mpi", what, kind]
                ratios[count] = ours[count] / theirs[count]
                good += ratios[count] <= 1.5
            }
            if (!count) { print "no pair is complete" >"/dev/stderr"; exit 1 }
            printf "| %s | %s | %.2f | %.2f | %.2f | %d of %d |\n", what, words, middle(ours, count), middle(theirs, count), \
                middle(ratios, count), good, count
        }
        { time[$1, $2, $3, $4] = $5; if ($1 > pairs) pairs = $1 }
        END {
            row("in bursts", "own", "the program'"'"'s (Win.Create)")
            row("in bursts", "allocated", "of MPI (Win.Allocate)")
            row("each completed", "own", "the program'"'"'s (Win.Create)")
            row("each completed", "allocated", "of MPI (Win.Allocate)")
        }
    ' "$raw"
} >"$report"
cat "$report"
[ -z "${WRITE:-}" ] || write_tables python "$report"
