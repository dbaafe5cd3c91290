#!/usr/bin/env bash
# Every operation of LAPI at once, from several threads of several tasks, while tasks are killed,
# stopped, and restarted:
# ci/soak.sh [SEED=n] [SECONDS=n] [TASKS=n] [HOSTS=n] [RAILS=n] [NETWORK=udp] [LOSS=percent].
# Without a seed, one is chosen. LAPI_STAGE names the installation to test. More than one host:
# network namespaces of this machine, which root can make, with RAILS links between them;
# NETWORK=udp: over UDP, where LOSS percent of the datagrams are lost.
#
# It prints the seed, each kill and the line of totals; on a failure, the error and the command that
# repeats it; when no task makes progress, the stack of each thread of each task.
set -eu
cd "$(dirname "$0")/.."
echo "== soak"
exec cargo run --quiet -p openlapi-tests --bin soak -- "SEED=$(date +%s)" "$@" </dev/null
