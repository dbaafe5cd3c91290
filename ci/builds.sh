#!/usr/bin/env bash
# What `make test` compiles, and its checks by the compiler, side by side: with optimisation, the
# installation to test, the doors that are tested as they are installed, and the Python package;
# without, the lints and the tests. cargo locks the folders of the two separately. Then the models.
set -eu
cd "$(dirname "$0")/.."
# Not while another cargo runs.
. ci/component.sh clippy clippy
. ci/lanes.sh
optimised() {
    "${MAKE:-make}" stage && "${MAKE:-make}" doors DOORS="fam rpmem" && ci/wheel.sh && ci/loom.sh
}
unoptimised() {
    ci/clippy.sh && echo "== build: the tests" && cargo test --workspace --no-run
}
lane "the library, the Python package, models" optimised
lane "lints, the tests" unoptimised
lanes_end
