#!/usr/bin/env bash
# What `make test` compiles and runs after the formatting: lints, every test of the workspace (unit
# tests, tests with real processes, documentation tests), the Python package, the models.
# LAPI_STAGE names the installation to test, which `make stage` makes.
#
# Two lanes compile side by side, with optimisation and without: cargo locks the folders of the two
# separately. The unit tests begin when what they need is there, and the others when all is. These
# run side by side, since those with real processes often wait: for a death to be noticed, for a
# link, for a launcher. The unit tests get the time that the others leave. Deadlines, which only
# tests that hang reach, are twice as long.
set -eu
cd "$(dirname "$0")/.."
# Not while another cargo runs.
. ci/component.sh clippy clippy
. ci/lanes.sh
export TEST_PATIENCE=${TEST_PATIENCE-2}
# Unit tests that take long.
unit=(openlapi openlapi_tools lapiprof)
# Tests that wait more than they compute, one at a time.
waiting=(deaths launchers network rails field_network survive)
# Tests that wait for the disk, those of the doors, and the Python package.
files=(calls daemon pmemobj by_hand conformance library persistence pool programs users python)
# Surroundings, and the programs of other people: these wait most of their time.
field=(field)

optimised() {
    "${MAKE:-make}" stage && ci/wheel.sh
}
unoptimised() {
    ci/clippy.sh && echo "== build: the tests" && cargo test --workspace --no-run
}
# All lanes select the same packages and targets; cargo would build others with other features. The
# runner selects among their programs.
tests() { cargo test --workspace --tests --no-fail-fast --config "target.'cfg(all())'.runner = '$PWD/ci/runner.sh'" "$@"; }
unit_tests() {
    local failed=
    renice -n 10 -p $BASHPID >/dev/null
    TESTS_ONLY=${unit[*]} tests || failed=yes
    ci/loom.sh || failed=yes
    cargo test --workspace --doc --no-fail-fast || failed=yes
    [ -z "$failed" ]
}
waiting_tests() { TESTS_ONLY=${waiting[*]} tests -- --test-threads 1; }
files_tests() {
    local failed=
    TESTS_ONLY=${field[*]} tests -- --test-threads 4 || failed=yes
    TESTS_ONLY=${files[*]} tests || failed=yes
    [ -z "$failed" ]
}
other_tests() { TESTS_EXCEPT="${unit[*]} ${waiting[*]} ${files[*]} ${field[*]}" tests; }
other_processors() {
    renice -n 10 -p $BASHPID >/dev/null
    ci/test-cross.sh --short
}

lane "the library, the Python package" optimised
lane "lints, the tests" unoptimised
lane_ends "lints, the tests"
lane "unit tests, models, documentation tests" unit_tests
lane_ends "the library, the Python package"
lane "tests that wait" waiting_tests
lane "tests of files and doors" files_tests
lane "other tests" other_tests
lane "processors of other kinds" other_processors
lanes_end
