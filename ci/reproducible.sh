#!/usr/bin/env bash
# Builds everything that is published twice, in two folders, and compares: ci/reproducible.sh
# The libraries and tools, Debian packages, the wheel, both source tarballs, the crates and the
# bills of materials must have the same bytes. One folder has a clone of the repository, the other
# one the unpacked source tarball; umask, time zone, language and cargo's build folder differ too.
# Crates are made in two clones: those of a tarball do not name the commit.
# What is built is the last commit, with the settings of optimised builds that the environment has
# (CARGO_PROFILE_RELEASE_...). Everything is in the build folder's reproducible; it is kept when
# something differs.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$build/reproducible
rm -rf "$work"
mkdir -p "$work"
unset SOURCE_DATE_EPOCH VENDOR LAPI_STAGE STAGE BUILD_PROFILE MAKEFLAGS MAKELEVEL
# The tools of the build folder serve both.
export PATH=$PATH:$build/tools/bin
ci/tool.sh cargo-cyclonedx 0.5.9 >/dev/null

echo "== reproducible: the source tarball"
ci/dist.sh "$work/dist"
name=$(basename "$work"/dist/openlapi-*.tar.gz .tar.gz)
if [ -e .git ]; then
    git clone --quiet . "$work/first/$name-from-git"
    first=$work/first/$name-from-git
else
    mkdir "$work/first"
    tar -xf "$work/dist/$name.tar.gz" -C "$work/first"
    first=$work/first/$name
fi
mkdir -p "$work/second/a/longer/name"
tar -xf "$work/dist/$name.tar.gz" -C "$work/second/a/longer/name"
second=$work/second/a/longer/name/$name crates=$second
if [ -e .git ]; then
    crates=$work/second/a/clone
    (umask 077 && git clone --quiet . "$crates")
fi

# What is published of the folder's build, by name.
collect() { # collect BUILD TO
    local file
    mkdir -p "$2"
    for file in liblapi_r.so liblapiprof.so poe lapi_info lapi_perf lapi_prof lapi_top; do
        cp "$1/release/$file" "$2"
    done
    cp "$1"/compat/*.a "$1"/deb/*.deb "$1"/wheel/*.whl "$1"/dist/*.tar.gz "$1"/sbom/* "$1"/package/*.crate "$2"
}
echo "== reproducible: the first build, in $first"
(cd "$first" && umask 022 && export CARGO_TARGET_DIR=$first/target TZ=UTC LC_ALL=C &&
    make -s deb wheel dist sbom && make -s dist VENDOR=yes && ci/crates.sh --no-verify &&
    collect "$CARGO_TARGET_DIR" "$work/results/first") >"$work/first.log" 2>&1 </dev/null ||
    { tail -n 40 "$work/first.log"; exit 1; }
echo "== reproducible: the second build, in $second"
(cd "$second" && umask 077 && export CARGO_TARGET_DIR=$work/second/build TZ=Asia/Kathmandu LC_ALL=C.UTF-8 &&
    make -s deb wheel dist sbom && make -s dist VENDOR=yes && "$crates/ci/crates.sh" --no-verify &&
    collect "$CARGO_TARGET_DIR" "$work/results/second") >"$work/second.log" 2>&1 </dev/null ||
    { tail -n 40 "$work/second.log"; exit 1; }

failed=
# Names first: what only one build has made differs too.
for file in $(cd "$work/results" && find first second -type f -printf '%f\n' | LC_ALL=C sort -u); do
    read -r one _ < <(sha256sum "$work/results/first/$file" 2>&1)
    read -r two _ < <(sha256sum "$work/results/second/$file" 2>&1)
    if [ "$one" = "$two" ]; then
        echo "$one  $file"
    else
        echo "DIFFERS: $file: $one and $two"
        cmp "$work/results/first/$file" "$work/results/second/$file" || true
        failed+=" $file"
    fi
done
if grep -rlaF -e "$work" "$work/results"; then
    echo "ci/reproducible.sh: these files name the folder in which they were built" >&2
    failed+=" (names of folders)"
fi
if [ -n "$failed" ]; then
    echo "== reproducible: FAILED:$failed; both builds are in $work" >&2
    exit 1
fi
rm -rf "$work"
echo "== reproducible: two builds in two folders are the same"
