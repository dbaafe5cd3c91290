#!/usr/bin/env bash
# Makes bills of materials (CycloneDX 1.5, JSON): of what is installed, of the doors, of the Python
# package and of the crates that programs use, into the build folder's sbom. The same sources make
# the same bytes.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath -m "${CARGO_TARGET_DIR:-target}")
tool=$(ci/tool.sh cargo-cyclonedx 0.5.9)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
SOURCE_DATE_EPOCH=$(packaging/install/date.sh)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The tool writes beside each manifest: a copy of what cargo reads. It looks at no source.
find . \( -name target -o -name .git -o -path ./vendor \) -prune -o \( -name '*.rs' -o -name Cargo.toml -o -name Cargo.lock \) -print0 |
    tar --null -cf - -T - | tar -xf - -C "$work"
if [ -d vendor ]; then
    cp -r .cargo "$work"
    ln -s "$PWD/vendor" "$work/vendor"
fi
target=${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
(cd "$work" && "$tool" cyclonedx --quiet --format json --all --spec-version 1.5 --target "$target")

rm -rf "$build/sbom"
mkdir -p "$build/sbom"
declare -A made=([cdylib/lapi_r]=liblapi_r [prof/cdylib/lapiprof]=liblapiprof [tools/openlapi-tools]=tools
    [doors/fam/openlapi-fam]=fam [doors/gm/openlapi-gm]=gm [doors/netio3/openlapi-netio3]=netio3 [doors/rpmem/openlapi-rpmem]=rpmem
    [python/openlapi-python]=python [lapi/lapi]=crate-lapi [doors/session/openlapi-session]=crate-openlapi-session)
for from in "${!made[@]}"; do
    # Where the copy was says nothing of the sources.
    sed "s|file://$work|file:///openlapi-$version|g" "$work/$from.cdx.json" >"$build/sbom/openlapi-$version-${made[$from]}.cdx.json"
done
if grep -rn "$work" "$build/sbom"; then
    echo "ci/sbom.sh: a bill of materials names a folder of this machine" >&2
    exit 1
fi
ls "$build"/sbom/*
