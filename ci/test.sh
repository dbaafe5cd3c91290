#!/usr/bin/env bash
# What `make test` compiles and runs after the formatting: lints, the tests of the workspace (unit
# tests, tests with real processes, documentation tests), the Python package, the models.
# It makes the installation that they test: of the profile `tested` (Cargo.toml), which takes half
# the time of `release` to build. `long_form` below lists the tests that it leaves out.
#
# With TEST_LONG=yes it leaves none out, tests what `make` builds, and looks at all targets for
# lints, as ci/check-all.sh runs it.
#
# Two lanes compile side by side: with optimisation, and without. cargo locks their folders
# separately. Unit tests begin when the tests are compiled, the others when all is. These run side
# by side, since those with real processes often wait: for a death to be noticed, for a link, for a
# launcher. Models, and what is compiled for processors of other kinds, have build folders of their
# own, and get the time that the others leave. Deadlines, which only tests that hang reach, are
# twice as long.
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

# Tests of the long form: each takes 5 to 20 s of processors, and make test has one much like it, or
# the same of another provider.
long_form=(
    # conforms_with_the_datagrams_of_an_ethernet
    transport::udp::tests::conforms_with_long_datagrams
    transport::udp::tests::conforms_with_short_datagrams_that_are_not_sealed
    # conforms_on_tcp, conforms_under_faults
    transport::fabric::tests::conforms_on_udp
    transport::fabric::tests::conforms_where_nothing_wakes_a_sleeper
    # every_shape_by_bulk_transfer
    long_pieces_go_by_bulk_transfer_on_two_hosts
    # links_go_down_and_come_up_under_load
    long_pieces_survive_links_that_go_down
)
for test in "${long_form[@]}"; do
    grep -rqF "fn ${test##*::}(" src tests/tests || { echo "ci/test.sh: there is no test $test" >&2 && exit 1; }
done

# Settings for all: the tests make installations, too.
export BUILD_PROFILE LAPI_STAGE TEST_LONG TESTS_SKIP
LAPI_STAGE=$(realpath -m "${CARGO_TARGET_DIR:-target}")
if [ "${TEST_LONG-}" = yes ]; then
    BUILD_PROFILE=release LAPI_STAGE+=/stage TESTS_SKIP=
else
    unset TEST_LONG
    BUILD_PROFILE=tested LAPI_STAGE+=/tested/stage TESTS_SKIP=${long_form[*]}
    echo "== test: ${#long_form[@]} tests and two of three messages of GiB only with TEST_LONG=yes"
fi

# Many of them wait for something in the midst of others that compute.
core_tests() { TESTS_ONLY=${core[*]} tests -- --test-threads $(($(nproc) > 4 ? $(nproc) : 4)); }
# Before any test begins: cargo locks the folder while it compiles.
compiled() {
    ci/clippy.sh ${TEST_LONG:+--all} && echo "== build: the tests" && cargo test --workspace --no-run
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
# Their long parts need the memory and the time of an idle machine: make test-net has them.
waiting_tests() { (unset TEST_LONG && TESTS_ONLY=${waiting[*]} tests -- --test-threads 1); }
network_tests() { (unset TEST_LONG && TESTS_ONLY=${networks[*]} tests -- --test-threads 1); }
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

lane "the library" "${MAKE:-make}" stage BUILD_PROFILE="$BUILD_PROFILE" STAGE="$LAPI_STAGE"
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
