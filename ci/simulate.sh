#!/usr/bin/env bash
# Whole jobs over UDP, simulated from seeds: ci/simulate.sh [SEEDS [FIRST]]. A seed that fails
# is printed, and
#
#   SIMULATION_LOG=1 ci/simulate.sh 1 SEED
#
# runs it again, with what happens in it. The core is optimised, and has its debug assertions: they
# compare what a short call does with the plan, among others.
set -eu
cd "$(dirname "$0")/.."
echo "== simulate: ${1:-1000} seeds from ${2:-1}"
SEEDS=${1:-1000} SEED=${2:-1} cargo test --release -p openlapi --lib \
    --config profile.release.package.openlapi.debug-assertions=true \
    engine::tests::simulation::whole_jobs -- --nocapture </dev/null
