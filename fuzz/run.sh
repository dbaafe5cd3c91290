#!/usr/bin/env bash
# Fuzzes each target, or the one named, for some seconds: fuzz/run.sh [SECONDS [TARGET]].
#
# Flags make a stable compiler instrument the code and check every access to memory; with cargo-fuzz and a nightly
# compiler, `cargo fuzz run TARGET` does the same. New inputs are kept in fuzz/corpus, failing ones in fuzz/artifacts.
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

for target in ${2:-verifier machine}; do
    mkdir -p "corpus/$target" "artifacts/$target"
    echo "== fuzz: $target for $seconds seconds"
    "$target_dir/$host/release/$target" -max_total_time="$seconds" -max_len=600 -print_final_stats=1 \
        -artifact_prefix="artifacts/$target/" "corpus/$target"
done
echo "== fuzz: ${2:-verifier machine}: no failure, $seconds seconds each"
