#!/usr/bin/env bash
# Tests on processors of other kinds, which qemu plays: test-cross.sh [--short] [MACHINE...]
# MACHINE is aarch64 or powerpc64le; without any it is both.
#
# On each: the headers of C and C++ against that machine's compiler, the unit tests of the core, the
# runtime, the profiler and the Fortran interface, and the programs of the tests below, in C and
# Fortran, which are built with the staged wrapper and run as tasks of this machine's poe. --short:
# the headers and a few programs.
#
# qemu runs each instruction as written, in the order of this machine's memory: what a weakly
# ordered one may do is tried by the models (make loom). It has no process_vm_readv, ptrace or
# perf, so that copies across address spaces, debuggers and checkers are not tried here. Nor are
# reports of crashes and the profiler in a program: they were seen by hand.
set -eu
cd "$(dirname "$0")/.."
short=
[ "${1-}" != --short ] || { short=yes && shift; }
machines=("$@")
[ $# -ne 0 ] || machines=(aarch64 powerpc64le)
files=(address counters data dgsp errors fence fortran handlers init interrupt locks messages progress threads util vectors)
[ -z "$short" ] || files=(counters fortran messages)
build=$(realpath -m "${CARGO_TARGET_DIR:-target}")
make=${MAKE:-make}

if [ -z "${TEST_POE-}" ]; then
    "$make" stage
    export TEST_POE=$build/stage/bin/poe
fi
failed=()
for machine in "${machines[@]}"; do
    target=$machine-unknown-linux-gnu
    "$make" stage "TARGET=$target"
    export CROSS_COMPILE=$machine-linux-gnu-
    qemu=qemu-${machine/powerpc64le/ppc64le}
    export TEST_RUNNER="$qemu -L /usr/$machine-linux-gnu"
    name=$(tr a-z- A-Z_ <<<"$target")
    export "CARGO_TARGET_${name}_LINKER=${CROSS_COMPILE}gcc" "CARGO_TARGET_${name}_RUNNER=$TEST_RUNNER"
    echo "== test-cross: $machine: the headers against its compilers"
    cargo test -p openlapi-capi --target "$target" --test layout --test compile </dev/null || failed+=("$machine: headers")
    if [ -z "$short" ]; then
        echo "== test-cross: $machine: unit tests"
        cargo test -p openlapi -p openlapi-runtime -p openlapi-prof -p openlapi-fortran --lib --target "$target" </dev/null || failed+=("$machine: unit tests")
    fi
    echo "== test-cross: $machine: programs"
    MP_COMPILER=${CROSS_COMPILE}gcc LAPI_STAGE=$build/$target/stage \
        cargo test -p openlapi-tests --no-fail-fast "${files[@]/#/--test=}" -- --skip headers:: --skip profiling:: </dev/null ||
        failed+=("$machine: programs")
done
[ ${#failed[@]} -eq 0 ] || { printf 'ci/test-cross.sh: failed: %s\n' "${failed[@]}" >&2; exit 1; }
echo "== test-cross: all of it passed: ${machines[*]}"
