#!/usr/bin/env bash
# What `make test` compiles and runs after the formatting: lints, every test of the workspace (unit
# tests, tests with real processes, documentation tests), the Python package, the models.
# LAPI_STAGE names the installation to test, which `make stage` makes.
#
# Three lanes compile side by side: with optimisation, without, and the core's unit tests. cargo
# locks the folders of the three separately. The unit tests begin when what they need is there, and
# the others when all is. These run side by side, since those with real processes often wait: for a
# death to be noticed, for a link, for a launcher. The unit tests get the time that the others
# leave. Deadlines, which only tests that hang reach, are twice as long.
#
# The core's unit tests simulate and compute: they are built by themselves, a little optimised, and
# without lines for backtraces: 230 s of processors, and 200 to run them, instead of 55 and 510.
# Checks of overflows and debug assertions stay. In the folder of the other tests these would wait
# minutes for the lock.
set -eu
cd "$(dirname "$0")/.."
# Not while another cargo runs.
. ci/component.sh clippy clippy
. ci/lanes.sh
export TEST_PATIENCE=${TEST_PATIENCE-2}
# Unit tests that take long, without the core's.
unit=(openlapi_tools openlapi_prof)
# Tests that wait more than they compute, one at a time: two lanes.
waiting=(launchers rails survive)
networks=(deaths field_network network)
# Others that take long, so that the rest need not wait for them.
long=(checkpoint data harness hosts many soak standalone udp)
# Tests that wait for the disk, and those of the doors.
files=(calls daemon pmemobj by_hand conformance library movers persistence pool programs users)
# Surroundings, and the programs of other people: these wait most of their time.
field=(field)

core_tests() {
    local what=(cargo test -p openlapi --lib --features fuzz --target-dir "${CARGO_TARGET_DIR:-target}/core"
        --config 'profile.dev.package.openlapi.opt-level = 1' --config 'profile.dev.package.openlapi.debug = false'
        --config 'profile.dev.package.openlapi.codegen-units = 4'
        --config "target.'cfg(all())'.runner = '$PWD/ci/runner.sh'")
    "${what[@]}" --no-run
    renice -n 10 -p $BASHPID >/dev/null
    "${what[@]}"
}
unoptimised() {
    ci/clippy.sh && echo "== build: the tests" && cargo test --workspace --exclude openlapi --no-run
}
# All lanes select the same packages and targets; cargo would build others with other features. The
# runner selects among their programs.
tests() {
    cargo test --workspace --exclude openlapi --tests --no-fail-fast \
        --config "target.'cfg(all())'.runner = '$PWD/ci/runner.sh'" "$@"
}
unit_tests() {
    local failed=
    renice -n 10 -p $BASHPID >/dev/null
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
    TESTS_EXCEPT="${unit[*]} ${waiting[*]} ${networks[*]} ${long[*]} ${files[*]} ${field[*]} python" tests
}
other_processors() {
    renice -n 10 -p $BASHPID >/dev/null
    ci/test-cross.sh --short
}

lane "the library" "${MAKE:-make}" stage
lane "unit tests of the core" core_tests
lane "lints, the tests" unoptimised
lane_ends "lints, the tests"
lane "unit tests, documentation tests" unit_tests
lane "models" models
lane_ends "the library"
lane "the Python package" python_tests
lane "tests that wait" waiting_tests
lane "tests of networks and deaths" network_tests
lane "long tests" long_tests
lane "tests of files and doors" files_tests
lane "surroundings" field_tests
lane "other tests" other_tests
lane "processors of other kinds" other_processors
lanes_end
