#!/usr/bin/env bash
# What `make test` compiles and runs after the formatting: lints, every test of the workspace (unit
# tests, tests with real processes, documentation tests), the Python package, the models.
# LAPI_STAGE names the installation to test, which `make stage` makes.
#
# Two lanes compile side by side: with optimisation, and without. cargo locks their folders
# separately. Unit tests begin when the tests are compiled, the others when all is. These run side
# by side, since those with real processes often wait: for a death to be noticed, for a link, for a
# launcher. Models, and what is compiled for processors of other kinds, have build folders of their
# own, and get the time that the others leave. Deadlines, which only tests that hang reach, are
# twice as long.
#
# The core's unit tests simulate and compute. A little optimised they take 170 s of processors
# instead of 450, and 300 more to compile.
set -eu
cd "$(dirname "$0")/.."
# Not while another cargo runs.
. ci/component.sh clippy clippy
. ci/lanes.sh
export TEST_PATIENCE=${TEST_PATIENCE-2}
# Unit tests that take long; those of the core are in a lane of their own.
unit=(openlapi_tools openlapi_prof)
core=(openlapi)
# Tests that wait more than they compute, one at a time: two lanes.
waiting=(launchers rails survive)
networks=(deaths field_network network)
# Others that take long, so that the rest need not wait for them.
long=(checkpoint data harness hosts many soak standalone udp)
# Tests that wait for the disk, and those of the doors.
files=(calls daemon pmemobj by_hand conformance library movers persistence pool programs users)
# Surroundings, and the programs of other people: these wait most of their time.
field=(field)

# Many of them wait for something in the midst of others that compute.
core_tests() { TESTS_ONLY=${core[*]} tests -- --test-threads $(($(nproc) > 4 ? $(nproc) : 4)); }
# Before any test begins: cargo locks the folder while it compiles.
compiled() {
    ci/clippy.sh && echo "== build: the tests" && cargo test --workspace --no-run
}
# All lanes select the same packages and targets; cargo would build others with other features. The
# runner selects among their programs.
tests() {
    cargo test --workspace --tests --no-fail-fast \
        --config "target.'cfg(all())'.runner = '$PWD/ci/runner.sh'" "$@"
}
unit_tests() {
    local failed=
    TESTS_ONLY=${unit[*]} tests || failed=yes
    cargo test --workspace --doc --no-fail-fast || failed=yes
    [ -z "$failed" ]
}
models() {
    renice -n 10 -p $BASHPID >/dev/null
    ci/loom.sh
}
waiting_tests() { TESTS_ONLY=${waiting[*]} tests -- --test-threads 1; }
network_tests() { TESTS_ONLY=${networks[*]} tests -- --test-threads 1; }
long_tests() { TESTS_ONLY=${long[*]} tests; }
field_tests() { TESTS_ONLY=${field[*]} tests -- --test-threads 4; }
files_tests() { TESTS_ONLY=${files[*]} tests; }
python_tests() { TESTS_ONLY=python tests; }
other_tests() {
    TESTS_EXCEPT="${unit[*]} ${core[*]} ${waiting[*]} ${networks[*]} ${long[*]} ${files[*]} ${field[*]} python" tests
}
other_processors() {
    renice -n 10 -p $BASHPID >/dev/null
    ci/test-cross.sh --short
}

lane "the library" "${MAKE:-make}" stage
lane "lints, the tests" compiled
lane "models" models
lane_ends "lints, the tests"
lane "unit tests of the core" core_tests
lane "unit tests, documentation tests" unit_tests
lane_ends "the library"
lane "processors of other kinds" other_processors
lane "the Python package" python_tests
lane "tests that wait" waiting_tests
lane "tests of networks and deaths" network_tests
lane "long tests" long_tests
lane "tests of files and doors" files_tests
lane "surroundings" field_tests
lane "other tests" other_tests
lanes_end
