#!/usr/bin/env bash
# The tests of the library's behaviour over the network: ci/test-net.sh [fabric|hybrid...] [-- TEST FILE...]. LAPI_STAGE names the
# installation to test. With no argument both ways, and all files.
#
#   fabric   every job under poe on this machine, without shared memory
#   hybrid   every job of two or more tasks on two hosts (network namespaces), with shared memory within each
#
# It needs libfabric, and for hybrid namespaces and a launcher (Hydra). The tests of tests/tests/network.rs follow, with 5 GiB.
set -eu
cd "$(dirname "$0")/.."
files=(address counters data dgsp env errors fence fork handlers init interrupt locks messages progress samples stress threads util vectors)
ways=()
while [ $# -gt 0 ]; do
    case $1 in
    fabric | hybrid) ways+=("$1") ;;
    --)
        shift
        files=("$@")
        break
        ;;
    *) echo "ci/test-net.sh: $1 is not fabric or hybrid" >&2 && exit 2 ;;
    esac
    shift
done
all=
[ ${#ways[@]} -gt 0 ] || { ways=(fabric hybrid) all=yes; }
tests=()
for file in "${files[@]}"; do tests+=(--test "$file"); done
export ADDRESS_RUNS=${ADDRESS_RUNS-20}
failed=()
for way in "${ways[@]}"; do
    echo "== test-net: $way: ${files[*]}"
    # Two at a time: each job has processes on both hosts, which share the processors.
    TEST_TRANSPORT=$way cargo test -p openlapi-tests --no-fail-fast "${tests[@]}" -- --test-threads 2 </dev/null || failed+=("$way")
done
if [ -n "$all" ]; then
    echo "== test-net: what needs a network, with messages of 5 GiB"
    TEST_LONG=yes cargo test -p openlapi-tests --test network -- --test-threads 1 </dev/null || failed+=(network)
fi
if [ ${#failed[@]} -ne 0 ]; then
    echo "== test-net: failed: ${failed[*]}" >&2
    exit 1
fi
echo "== test-net: all of it passed"
