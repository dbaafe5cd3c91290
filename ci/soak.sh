#!/usr/bin/env bash
# Every operation of LAPI at once, from several threads of several tasks, while tasks are killed, stopped, and restarted:
# ci/soak.sh SECONDS TASKS HOSTS RAILS [SEED]. Without a seed, one is chosen. LAPI_STAGE names the installation to test. More than one
# host: network namespaces of this machine, which root can make, with RAILS links between them.
#
# It prints the seed, each kill and the line of totals; on a failure, the error and the command that repeats it; when no task
# makes progress, the stack of each thread of each task.
set -eu
cd "$(dirname "$0")/.."
echo "== soak"
exec cargo run --quiet -p openlapi-tests --bin soak -- "${1:-60}" "${5:-$(date +%s)}" "${2:-8}" "${3:-1}" "${4:-1}" </dev/null
