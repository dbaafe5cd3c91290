#!/usr/bin/env bash
# All checks, each step even if another one fails, and a summary: ci/check-all.sh [STEP...]. It
# takes hours on two processors.
# Steps: test, test-crowded, test-net, demo-doors, sanitize, interop, deny, crates, dist-test,
# reproducible, deb-test, site-test, test-cross (SKIPPED where its compilers, Rust's targets and
# qemu are not installed and cannot be), simulate, soak and soak-gm (10 minutes each), soak-rpmem,
# soak-fam, soak-sessions, fuzz (1 minute for each target).
# The output of each step is in the build folder, in check-all/STEP.log. What tests say in them that
# were skipped is printed once, before the summary.
set -eu
cd "$(dirname "$0")/.."
steps=(test test-crowded test-net demo-doors sanitize interop deny crates dist-test reproducible deb-test site-test test-cross simulate soak soak-gm soak-rpmem soak-fam soak-sessions fuzz)
[ $# -eq 0 ] || steps=("$@")
logs=$(realpath -m "${CARGO_TARGET_DIR:-target}")/check-all
mkdir -p "$logs"
results=() failed=() ran=() skipped=
for step in "${steps[@]}"; do
    case $step in
    soak | soak-gm) arguments=("$step" SECONDS=600) ;;
    fuzz) arguments=(fuzz SECONDS=60) ;;
    test) arguments=(test TEST_LONG=yes) ;;
    test-crowded | test-net | demo-doors | sanitize | interop | deny | crates | dist-test | reproducible | deb-test | site-test | test-cross | simulate | soak-rpmem | soak-fam | soak-sessions) arguments=("$step") ;;
    *) echo "ci/check-all.sh: unknown step $step" >&2 && exit 2 ;;
    esac
    if [ "$step" = test-cross ] && ! ci/deps.sh aarch64 powerpc64le cross-test >"$logs/$step.log" 2>&1 </dev/null; then
        results+=("$(printf '%-13s SKIPPED: %s' "$step" "$(tail -n 1 "$logs/$step.log")")")
        echo "   ${results[-1]}"
        skipped=", but what was SKIPPED"
        continue
    fi
    ran+=("$logs/$step.log")
    started=$SECONDS
    echo "== check-all: make ${arguments[*]}"
    if make "${arguments[@]}" >"$logs/$step.log" 2>&1 </dev/null; then
        result=passed
    else
        result=FAILED
        failed+=("$step")
        grep -aE '^test .*FAILED|panicked at|SUMMARY: |[Ee]rror' "$logs/$step.log" | head -n 40 || true
        tail -n 15 "$logs/$step.log"
    fi
    results+=("$(printf '%-13s %s, %d min %02d s: %s' "$step" "$result" $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60)) \
        "$(grep -av '^make' "$logs/$step.log" | tail -n 1)")")
done
tests=$(ci/skipped.sh "${ran[@]}" </dev/null)
[ -z "$tests" ] || { echo "$tests" && skipped=", but what was SKIPPED"; }
echo "== check-all:"
printf '   %s\n' "${results[@]}"
if [ ${#failed[@]} -ne 0 ]; then
    echo "== check-all: failed: ${failed[*]}; what they said: $logs" >&2
    exit 1
fi
echo "== check-all: all of it passed$skipped"
