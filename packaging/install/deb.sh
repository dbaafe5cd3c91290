#!/usr/bin/env bash
# Makes the Debian packages: deb.sh FOLDER
#
#   liblapi-r1       the library, its message catalogues, and the profiler's library
#   liblapi-r-dev    headers, archives, compile wrappers, pkg-config and CMake files, man pages of the calls, the samples
#   openlapi         poe, lapi_info, lapi_perf, lapi_prof, lapi_top and their man pages
#
# and those of each door of DOORS that has a packaging/control, where its packages are described as
# below, with @ARCH@ and @VERSION@. Beside it may lie PACKAGE.shlibs, .symbols, .triggers and
# .overrides, for DEBIAN/ and lintian; @VERSION@ is filled in.
#
# The first column of packaging/install/manifest names the package of each file, and that of a
# door's manifest is the package. The variables are
# those of install.sh. Times in the packages are that of the last commit (or SOURCE_DATE_EPOCH), so
# that the same sources make the same packages.
# DEBFULLNAME and DEBEMAIL name the maintainer.
#
# DEB_ARCH is Debian's name of the machine for which the library was built, this one unless given,
# and CROSS_COMPILE the beginning of the names of its binary utilities. The libraries lie in the
# folder of their kind of machine, so that those of several kinds can be installed together. Of a
# foreign machine dpkg-shlibdeps knows the libraries in Debian's packages for cross compilers.
set -eu
cd "$(dirname "$0")/../.."
out=$1
nm=${CROSS_COMPILE-}nm
strip=${CROSS_COMPILE-}strip
for tool in dpkg-deb dpkg-shlibdeps dpkg-gencontrol dpkg-architecture "$nm" "$strip"; do
    command -v "$tool" >/dev/null || { echo "deb.sh: there is no $tool here (ci/deps.sh deb)" >&2; exit 1; }
done

export PREFIX=/usr
SOURCE_DATE_EPOCH=$(packaging/install/date.sh)
export SOURCE_DATE_EPOCH
version=$VERSION-1
maintainer="${DEBFULLNAME:-OpenLAPI} <${DEBEMAIL:-openlapi@localhost}>"
arch=${DEB_ARCH:-$(dpkg --print-architecture)}
export DEB_HOST_ARCH=$arch
multiarch=$(dpkg-architecture -a"$arch" -qDEB_HOST_MULTIARCH 2>/dev/null)
export LIBDIR=lib/$multiarch
umask 022
rm -rf "$out"
mkdir -p "$out/all" "$out/debian"
out=$(cd "$out" && pwd)

packages=(liblapi-r1 liblapi-r-dev openlapi) controls=()
declare -A names=([lib]=liblapi-r1 [dev]=liblapi-r-dev [bin]=openlapi)
stage() { # stage [DOOR]: its files, each into the folder of its package
    DESTDIR=$out/all packaging/install/install.sh install "$@"
    packaging/install/install.sh list "$@" | while read -r package file; do
        [ "$package" != no ] || continue
        to=$out/${names[$package]-$package}/usr/$file
        mkdir -p "${to%/*}"
        cp -a "$out/all/usr/$file" "$to"
    done
}
stage
for door in ${DOORS-}; do
    [ -f "doors/$door/packaging/control" ] || continue
    stage "$door"
    controls+=("doors/$door/packaging/control")
    mapfile -t -O ${#packages[@]} packages < <(sed -n 's/^Package: //p' "doors/$door/packaging/control")
done
rm -rf "$out/all"

# --- common to all packages -----------------------------------------------------------------------
compressed() { gzip -9n >"$1"; }

documents() { # documents PACKAGE
    local doc=$out/$1/usr/share/doc/$1
    mkdir -p "$doc"
    sed "s/@YEAR@/$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y)/" packaging/install/copyright >"$doc/copyright"
    compressed "$doc/changelog.gz" <CHANGELOG.md
    compressed "$doc/changelog.Debian.gz" <<END
openlapi ($version) unstable; urgency=medium

  * Packaged from the sources of version $VERSION: see changelog.gz.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END
}

find "$out" -type f \( -name '*.so' -o -name '*.so.*' -o -path '*/usr/bin/*' \) -print0 | while IFS= read -r -d '' file; do
    if [ "$(head -c 4 "$file" | tr -d '\0')" = $'\x7fELF' ]; then
        "$strip" --strip-unneeded --remove-section=.comment "$file"
        case $file in *.so | *.so.*) chmod 644 "$file" ;; esac
    fi
done
find "$out" -name '*.a' -exec "$strip" --strip-debug --enable-deterministic-archives {} +
# Manual pages are compressed in Debian, and links to them use the new name.
find "$out" -path '*/share/man/*' -type f -exec gzip -9n {} +
find "$out" -path '*/share/man/*' -type l -print0 | while IFS= read -r -d '' link; do
    ln -s "$(readlink "$link").gz" "$link.gz"
    rm "$link"
done

# --- specific to each package ---------------------------------------------------------------------
examples=$out/liblapi-r-dev/usr/share/doc/liblapi-r-dev/examples
mkdir -p "$examples"
cp -r samples/. "$examples"
# The sources may be for their owner alone.
chmod -R u=rwX,go=rX "$examples"
# Samples in Rust and Python need the crate and the package for them, which no Debian package has.
rm -r "$examples/rust" "$examples/python"
find "$examples" -name .gitignore -delete

mkdir -p "$out/liblapi-r1/DEBIAN"
printf '%s 1 liblapi-r1 (>= %s)\n' liblapi_r "$VERSION" liblapiprof "$VERSION" >"$out/liblapi-r1/DEBIAN/shlibs"
echo "activate-noawait ldconfig" >"$out/liblapi-r1/DEBIAN/triggers"
{
    echo "liblapi_r.so.1 liblapi-r1 #MINVER#"
    echo "* Build-Depends-Package: liblapi-r-dev"
    # No symbol is newer than the first release yet, so all have its version.
    sed 's/ .*/@Base 0.1.0/; s/^/ /' tests/symbols.txt
    # The profiler exports the calls that it wraps.
    echo "liblapiprof.so.1 liblapi-r1 #MINVER#"
    echo "* Build-Depends-Package: liblapi-r-dev"
    "$nm" -D --defined-only --format=posix "$RELEASE/liblapiprof.so" | sed 's/ .*/@Base 0.1.0/; s/^/ /' | LC_ALL=C sort
} >"$out/liblapi-r1/DEBIAN/symbols"

override() { # override PACKAGE TAG...: what lintian is right about, and what is meant to be so all the same
    local package=$1 file=$out/$1/usr/share/lintian/overrides/$1
    shift
    mkdir -p "${file%/*}"
    printf "$package: %s\n" "$@" >"$file"
}
# These packages are not uploaded to Debian.
override openlapi initial-upload-closes-no-bugs
# The profiler belongs to the library, and loads it from its own folder.
override liblapi-r1 initial-upload-closes-no-bugs "package-name-doesnt-match-sonames *" "custom-library-search-path *"
# Old link lines name the two empty libraries; mpcc_r needs all files below one prefix.
override liblapi-r-dev initial-upload-closes-no-bugs "no-code-sections *" "pkg-config-unavailable-for-cross-compilation *"

for control in "${controls[@]}"; do
    for package in $(sed -n 's/^Package: //p' "$control"); do
        mkdir -p "$out/$package/DEBIAN"
        for kind in shlibs symbols triggers; do
            [ ! -f "${control%/*}/$package.$kind" ] ||
                sed "s/@VERSION@/$VERSION/g" "${control%/*}/$package.$kind" >"$out/$package/DEBIAN/$kind"
        done
        mapfile -t tags < <(cat "${control%/*}/$package.overrides" 2>/dev/null || :)
        override "$package" initial-upload-closes-no-bugs "${tags[@]}"
    done
done

# --- control files --------------------------------------------------------------------------------
cat >"$out/debian/control" <<END
Source: openlapi
Maintainer: $maintainer
Section: libs
Priority: optional
Standards-Version: 4.6.2

Package: liblapi-r1
Architecture: $arch
Multi-Arch: same
Section: libs
Depends: \${shlibs:Depends}
Description: one-sided communication with LAPI's interface
 OpenLAPI is a library for parallel programs with the interface of LAPI, the
 low-level application programming interface of RSCT: puts, gets, active
 messages with header and completion handlers, read-modify-write, fences and
 counters. Tasks on one machine communicate through shared memory.
 .
 This package has the shared library, its message catalogues, and a profiler
 to preload.

Package: liblapi-r-dev
Architecture: $arch
Section: libdevel
Depends: liblapi-r1 (= $version), libc6-dev
Recommends: gcc, pkg-config | pkgconf
Suggests: g++, gfortran
Description: one-sided communication with LAPI's interface - development files
 OpenLAPI is a library for parallel programs with the interface of LAPI, the
 low-level application programming interface of RSCT.
 .
 This package has the headers for C, C++ and Fortran, the compile wrappers,
 files for pkg-config and CMake, man pages, and the sample programs.

Package: openlapi
Architecture: $arch
Section: net
Depends: liblapi-r1 (= $version), \${shlibs:Depends}
Description: one-sided communication with LAPI's interface - launcher and tools
 OpenLAPI is a library for parallel programs with the interface of LAPI, the
 low-level application programming interface of RSCT.
 .
 This package has poe, which starts the tasks of a program, carries their
 input and output and leaves nothing behind, lapi_info, which shows what a
 program would find on this machine, and lapi_prof, which merges profiles.
END
for control in "${controls[@]}"; do
    echo
    sed -e "s/@ARCH@/$arch/g" -e "s/@VERSION@/$version/g" "$control"
done >>"$out/debian/control"
cat >"$out/debian/changelog" <<END
openlapi ($version) unstable; urgency=medium

  * Packaged.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END

cross=()
[ -z "${CROSS_COMPILE-}" ] || cross=("-l/usr/$multiarch/lib")
for package in "${packages[@]}"; do
    documents "$package"
    root=$out/$package
    mkdir -p "$root/DEBIAN"
    find "$root" -type d -exec chmod 755 {} +
    mapfile -t binaries < <(find "$root/usr" -type f \( -name '*.so' -o -name '*.so.*' -o -path '*/bin/*' \) -exec grep -lI -L . {} +)
    substvars=$out/debian/$package.substvars
    : >"$substvars"
    if [ ${#binaries[@]} -gt 0 ]; then
        (cd "$out" && dpkg-shlibdeps "${cross[@]}" -T"$substvars" "${binaries[@]/#/-e}")
        # The packages for cross compilers carry the machine in their names.
        sed -i -e "s/:$arch\b//g" -e "s/-$arch-cross\b//g" "$substvars"
    fi
    (cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    (cd "$out" && dpkg-gencontrol -p"$package" -P"$root" -T"$substvars" -v"$version" -ldebian/changelog \
        -cdebian/control -fdebian/files)
    dpkg-deb --root-owner-group --build "$root" "$out" >/dev/null
    rm -rf "$root"
done
rm -rf "$out/debian"
ls "$out"/*.deb
