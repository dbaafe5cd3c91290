#!/usr/bin/env bash
# Prints the path of a tool of cargo's registry, which is built into the build folder when the PATH
# has none: ci/tool.sh NAME VERSION [OPTION OF CARGO INSTALL...]
set -eu
cd "$(dirname "$0")/.."
name=$1 version=$2
shift 2
build=$(realpath -m "${CARGO_TARGET_DIR:-target}")
tool=$(command -v "$name" || true)
if [ -z "$tool" ]; then
    tool=$build/tools/bin/$name
    if [ ! -x "$tool" ]; then
        echo "== tool: building $name $version" >&2
        # Beside what the project builds, and with settings of its own.
        env -u CARGO_TARGET_DIR -u RUSTFLAGS cargo install --quiet --locked --root "$build/tools" "$@" "$name" --version "$version" >&2
    fi
fi
echo "$tool"
