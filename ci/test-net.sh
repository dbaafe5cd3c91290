#!/usr/bin/env bash
# The tests of the library's behaviour over the network: ci/test-net.sh [fabric|hybrid...] [-- TEST
# FILE...]. LAPI_STAGE names the installation to test, TEST_PROVIDER a provider of libfabric
# (tcp;ofi_rxm). With no argument both ways and all files, then with other providers all files (shm)
# or most of them, and tests/tests/network.rs and rails.rs with messages of 5 GiB and many handles.
#
#   fabric   every job under poe on this machine, without shared memory
#   hybrid   every job of two or more tasks on two hosts (network namespaces), with shared memory within each
#
# The other files take longer, 70 to 100 s each with udp;ofi_rxd on two processors. Other providers
# and files by hand, for example
#
#   TEST_PROVIDER='udp;ofi_rxd' TEST_PATIENCE=8 ci/test-net.sh hybrid -- stress threads vectors
#   TEST_PROVIDER=udp ci/test-net.sh hybrid
#   TEST_PROVIDER=udp TEST_LOSS=5 ci/test-net.sh hybrid       of the datagrams between the hosts 5 % are lost
#
# A test that a provider cannot pass says so, and is skipped with that provider.
#
# It needs libfabric, and for hybrid namespaces and a launcher (Hydra).
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
# Two at a time: each job has processes on both hosts, which share the processors.
run() { # run NAME TEST...
    local name=$1
    shift
    echo "== test-net: $name"
    cargo test -p openlapi-tests --no-fail-fast "$@" -- --test-threads 2 </dev/null || failed+=("$name")
}
for way in "${ways[@]}"; do TEST_TRANSPORT=$way run "$way" "${tests[@]}"; done
if [ -n "$all" ]; then
    # libfabric's own shared memory reaches one machine; datagrams are slow.
    TEST_PATIENCE=${TEST_PATIENCE-4} TEST_PROVIDER=shm TEST_TRANSPORT=fabric run "fabric, shm" "${tests[@]}"
    quick=()
    for file in "${files[@]}"; do
        case $file in stress | threads | vectors) ;; *) quick+=(--test "$file") ;; esac
    done
    if [ ${#quick[@]} -ne 0 ]; then
        TEST_PATIENCE=${TEST_PATIENCE-8} TEST_PROVIDER='udp;ofi_rxd' TEST_TRANSPORT=hybrid run "hybrid, udp;ofi_rxd" "${quick[@]}"
    fi
    # LAPI's own UDP; TEST_PROVIDER=udp ci/test-net.sh hybrid runs all files.
    TEST_PROVIDER=udp TEST_TRANSPORT=hybrid run "hybrid, udp" \
        --test data --test fence --test handlers --test recovery --test stress --test vectors
    echo "== test-net: strangers beside jobs over UDP, with a million datagrams"
    HOSTILE_DATAGRAMS=1000000 cargo test -p openlapi-tests --test hostile -- --test-threads 1 </dev/null || failed+=(hostile)
    echo "== test-net: what needs a network, with messages of 5 GiB and many handles"
    TEST_LONG=yes cargo test -p openlapi-tests --test network --test rails -- --test-threads 1 </dev/null || failed+=(network)
fi
if [ ${#failed[@]} -ne 0 ]; then
    echo "== test-net: failed: ${failed[*]}" >&2
    exit 1
fi
echo "== test-net: all of it passed"
