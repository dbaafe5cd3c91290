#!/usr/bin/env bash
# Every operation of LAPI at once, from several threads of several tasks, while tasks are killed, stopped, and started anew:
# ci/soak.sh SECONDS TASKS [SEED]. Without a seed, one is chosen. LAPI_STAGE names the installation to test.
#
# The seed, each kill and the line of totals are printed. When something fails: what, and how to repeat it; when nobody gets
# any further: where each thread of each task stands.
set -eu
cd "$(dirname "$0")/.."
echo "== soak"
exec cargo run --quiet -p openlapi-tests --bin soak -- "${1:-60}" "${3:-$(date +%s)}" "${2:-8}" </dev/null
