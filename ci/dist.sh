#!/usr/bin/env bash
# Makes the source tarball, openlapi-VERSION.tar.gz: ci/dist.sh FOLDER
# With VENDOR=yes it is openlapi-VERSION-vendored.tar.gz, which has the crates of others too, in
# vendor/, so that a build needs no network.
#
# In a git repository it holds the last commit. In unpacked sources, which have no .git, it holds
# the files that MANIFEST names, as they are. The same files make the same bytes.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
to=$(realpath "$1")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
date=$(packaging/install/date.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=openlapi-$version
sources=$work/$name
mkdir "$sources"
export LC_ALL=C

if [ -e .git ]; then
    # git must not write its index: cargo would build everything again (build.rs).
    [ -z "$(git --no-optional-locks status --porcelain)" ] || echo "== dist: the last commit; what differs from it is not in the tarball" >&2
    # A user's settings of git change nothing.
    git -c core.autocrlf=false -c core.attributesFile=/dev/null archive HEAD | tar -xf - -C "$sources"
elif [ -f MANIFEST ]; then
    # 64 digits and two blanks come before a name.
    cut -c 67- MANIFEST | tar -cf - --verbatim-files-from -T - | tar -xf - -C "$sources"
else
    echo "ci/dist.sh: neither .git nor MANIFEST is here, which say what belongs to the sources" >&2
    exit 1
fi
tarball=$name
if [ "${VENDOR-}" = yes ]; then
    tarball=$name-vendored
    if [ ! -d "$sources/vendor" ]; then
        mkdir "$sources/.cargo"
        # Not --quiet: that leaves out the settings, too.
        (cd "$sources" && cargo vendor --locked --versioned-dirs vendor >.cargo/config.toml 2>"$work/log") ||
            { cat "$work/log" >&2; exit 1; }
    fi
fi
(cd "$sources" && find . \( -type f -o -type l \) ! -path ./MANIFEST -printf '%P\0' | sort -z | xargs -0 sha256sum >"$work/MANIFEST")
mv "$work/MANIFEST" "$sources/MANIFEST"
tar -C "$work" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$date" -cf - "$name" |
    gzip -9n >"$work/tarball"
mv "$work/tarball" "$to/$tarball.tar.gz"
echo "$to/$tarball.tar.gz"
