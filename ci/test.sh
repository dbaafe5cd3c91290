#!/usr/bin/env bash
# Every test of the workspace: unit tests, tests with real processes, documentation tests.
# LAPI_STAGE names the installation to test; without it `make stage` is run by the first test
# that needs it.
#
# They run side by side, since those with real processes often wait: for a death to be noticed, for
# a link, for a launcher. The unit tests get the time that the others leave. The lanes take about
# equally long. Deadlines, which only tests that hang reach, are twice as long.
set -eu
cd "$(dirname "$0")/.."
. ci/lanes.sh
export TEST_PATIENCE=${TEST_PATIENCE-2}
# Unit tests that take long.
unit=(openlapi openlapi_tools lapiprof)
# Tests that wait more than they compute, one at a time.
waiting=(deaths launchers network rails)
# Tests that wait for the disk, those of the doors, and the programs of other people.
files=(calls daemon pmemobj by_hand conformance field library persistence pool programs users)
# Some, one at a time, in the lane of the unit tests, which would be the shortest.
before_unit=(field_network python survive)

# All lanes select the same packages and targets; cargo would build others with other features. The
# runner selects among their programs.
tests() { cargo test --workspace --tests --no-fail-fast --config "target.'cfg(all())'.runner = '$PWD/ci/runner.sh'" "$@"; }
unit_tests() {
    local failed=
    TESTS_ONLY=${before_unit[*]} tests -- --test-threads 1 || failed=yes
    renice -n 10 -p $BASHPID >/dev/null
    TESTS_ONLY=${unit[*]} tests || failed=yes
    cargo test --workspace --doc --no-fail-fast || failed=yes
    [ -z "$failed" ]
}
waiting_tests() { TESTS_ONLY=${waiting[*]} tests -- --test-threads 1; }
files_tests() { TESTS_ONLY=${files[*]} tests; }
other_tests() { TESTS_EXCEPT="${unit[*]} ${before_unit[*]} ${waiting[*]} ${files[*]}" tests; }

other_processors() {
    renice -n 10 -p $BASHPID >/dev/null
    ci/test-cross.sh --short
}

echo "== test"
cargo test --workspace --no-run </dev/null
lane "tests that wait" waiting_tests
lane "tests of files and doors" files_tests
lane "other tests" other_tests
lane "unit tests and some others" unit_tests
lane "processors of other kinds" other_processors
lanes_end
