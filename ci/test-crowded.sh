#!/usr/bin/env bash
# The tests of the library's behaviour on a crowded machine: every job has LAPI_SPIN=0 and two
# processors, and programs that work with any number of tasks (tests run them with three or more)
# have 16: ci/test-crowded.sh [TEST FILE...]. LAPI_STAGE names the installation to test.
#
# Other settings: TEST_JOB_ENV holds variables for every job, TEST_TASKS a number of tasks.
set -eu
cd "$(dirname "$0")/.."
files=(address counters data dgsp env errors failure fence fork handlers init interrupt locks recovery report stress survive
    threads util vectors)
[ $# -eq 0 ] || files=("$@")
export TEST_JOB_ENV=${TEST_JOB_ENV-LAPI_SPIN=0} TEST_TASKS=${TEST_TASKS-16} TEST_PATIENCE=${TEST_PATIENCE-4} ADDRESS_RUNS=${ADDRESS_RUNS-20}
# The first two of the processors that this process may use.
processors=$(taskset -cp $$ | sed 's/.*: //' | tr , '\n' | awk -F- '{ for (p = $1; p <= (NF > 1 ? $2 : $1); p++) print p }' | head -n 2 | paste -sd,)
echo "== test-crowded: $TEST_JOB_ENV, $TEST_TASKS tasks, processors $processors"
tests=()
for file in "${files[@]}"; do tests+=(--test "$file"); done
taskset -c "$processors" cargo test -p openlapi-tests --no-fail-fast "${tests[@]}" -- --test-threads 1 </dev/null
