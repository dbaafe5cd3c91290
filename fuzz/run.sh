#!/usr/bin/env bash
# Fuzzes each target, or the one named, for some seconds: fuzz/run.sh [SECONDS [TARGET]].
#
# Flags make a stable compiler instrument the code and check every access to memory. It begins with
# the inputs in fuzz/corpus; new ones are kept in fuzz/found, failing ones in fuzz/artifacts. An
# input whose failure is repaired belongs into fuzz/corpus.
set -eu
cd "$(dirname "$0")"
seconds=${1:-60}
host=$(rustc -vV | sed -n 's/^host: //p')
target_dir=${CARGO_TARGET_DIR:-target}

export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions --cfg fuzzing"
# Everything except build scripts is instrumented: hence the explicit host as target.
cargo build --release --target "$host" --target-dir "$target_dir"

# tests/tests/corpora.rs sees that each target has a folder here.
targets=(corpus/*)
targets=("${targets[@]##*/}")
[ $# -lt 2 ] || targets=("$2")
failed=()
for target in "${targets[@]}"; do
    mkdir -p "found/$target" "artifacts/$target"
    echo "== fuzz: $target for $seconds seconds"
    # A short input has no reason to take more memory at once.
    FUZZ_TARGET="$target" "$target_dir/$host/release/openlapi-fuzz" -max_total_time="$seconds" -max_len=1000 -malloc_limit_mb=16 \
        -timeout=10 -print_final_stats=1 -artifact_prefix="artifacts/$target/" "found/$target" "corpus/$target" ||
        failed+=("$target")
done
if [ ${#failed[@]} -ne 0 ]; then
    echo "== fuzz: failed: ${failed[*]}; the inputs: fuzz/artifacts" >&2
    exit 1
fi
echo "== fuzz: no failure, $seconds seconds for each of: ${targets[*]}"
