#!/usr/bin/env bash
# Programs of 32 and of 64 bits in one job, and of 32 bits alone. LAPI_STAGE names an installation
# with both libraries.
set -eu
cd "$(dirname "$0")/.."
if [ ! -e "$LAPI_STAGE/lib32/liblapi_r.so" ]; then
    echo "ci/interop.sh: $LAPI_STAGE has no library for 32 bits" >&2
    exit 1
fi
echo "== interop: the headers against the C compiler, for 32 bits"
cargo test --target i686-unknown-linux-gnu -p openlapi-capi --test layout --test compile </dev/null
echo "== interop: programs of 32 bits, alone and in one job with those of 64"
NEED_LIB32=yes cargo test -p openlapi-tests --test interop --test samples </dev/null
