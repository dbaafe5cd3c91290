#!/usr/bin/env bash
# `make test` RUNS times in a row, the second half of them beside LOOPS endless loops: tests hold at
# any load. What each run says is in the build folder, in repeat/NUMBER.log.
set -eu
cd "$(dirname "$0")/.."
runs=${RUNS:-10} loops=() failed=()
logs=$(realpath -m "${CARGO_TARGET_DIR:-target}")/repeat
mkdir -p "$logs"
trap '[ ${#loops[@]} -eq 0 ] || kill "${loops[@]}"' EXIT
for run in $(seq "$runs"); do
    while [ "$run" -gt $((runs / 2)) ] && [ ${#loops[@]} -lt "${LOOPS:-4}" ]; do
        while :; do :; done &
        loops+=($!)
    done
    result=passed started=$SECONDS
    "${MAKE:-make}" test >"$logs/$run.log" 2>&1 </dev/null || { result=FAILED && failed+=("$run"); }
    echo "== test-repeat: run $run of $runs, beside ${#loops[@]} loops: $result after $((SECONDS - started)) s"
done
[ ${#failed[@]} -eq 0 ] || { echo "== test-repeat: failed: ${failed[*]}; what they said: $logs" >&2 && exit 1; }
echo "== test-repeat: all of it passed"
