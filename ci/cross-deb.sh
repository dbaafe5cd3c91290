#!/usr/bin/env bash
# Looks into the Debian packages for a machine of another kind, unpacks them, and runs a sample with
# the library from there, under qemu: cross-deb.sh FOLDER MACHINE, for instance
# cross-deb.sh target/aarch64-unknown-linux-gnu/deb aarch64
# The tasks are those of this machine's poe, TEST_POE: under qemu 7.2 no program can become the
# subreaper of others, as poe does. lapi_info is that of the packages.
set -eu
cd "$(dirname "$0")/.."
packages=$1
machine=$2
case $machine in
aarch64) arch=arm64 elf=AArch64 ;;
powerpc64le) arch=ppc64el elf=PowerPC64 ;;
*) echo "ci/cross-deb.sh: no such machine: $machine" >&2 && exit 2 ;;
esac
lib=usr/lib/$machine-linux-gnu
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
wrong() { echo "ci/cross-deb.sh: $machine: $*" >&2 && exit 1; }
field() { dpkg-deb -f "$packages/$1"_*_"$arch.deb" "$2"; }

declare -A files=(
    [liblapi-r1]="$lib/liblapi_r.so.1 $lib/liblapiprof.so.1"
    [liblapi-r-dev]="$lib/liblapi_r.so $lib/libaixcompat.a $lib/pkgconfig/lapi_r.pc $lib/cmake/lapi/lapi-config.cmake usr/include/lapi.h usr/include/lapif.h usr/bin/mpcc_r"
    [openlapi]="usr/bin/poe usr/bin/lapi_info usr/bin/lapi_prof"
)
for package in "${!files[@]}"; do
    deb=$(echo "$packages/$package"_*.deb)
    dpkg-deb -I "$deb" >/dev/null
    [ "$(field "$package" Architecture)" = "$arch" ] || wrong "$package is for $(field "$package" Architecture)"
    held=$(dpkg-deb -c "$deb" | awk '{ print $6 }')
    for file in ${files[$package]}; do
        grep -qxF "./$file" <<<"$held" || wrong "$package has no $file"
    done
    ! grep -E '^\./usr/lib/[^/]+$' <<<"$held" || wrong "$package has files outside of $lib"
    dpkg-deb -x "$deb" "$tree"
    depends=$(field "$package" Depends)
    case $package in
    liblapi-r1) grep -Eq '^libc6 \(>= 2\.[0-9]+\)' <<<"$depends" || wrong "$package depends on $depends" ;;
    *) grep -q '^liblapi-r1 (= ' <<<"$depends" || wrong "$package depends on $depends" ;;
    esac
    ! grep -E ':|cross|amd64' <<<"$depends" || wrong "$package depends on packages for cross compilers"
done
[ "$(field liblapi-r1 Multi-Arch)" = same ] || wrong "libraries of two machines cannot be installed together"
objects=0
while read -r file; do
    [ "$(head -c 4 "$file" | tr -d '\0')" = $'\x7fELF' ] || continue
    objects=$((objects + 1))
    readelf -h "$file" | grep -q "Machine: *$elf\$" || wrong "$file is for another machine"
done < <(find "$tree" -type f)
[ "$objects" -ge 7 ] || wrong "$objects files of ELF"

# As a program of that machine is built: by the package's file for pkg-config, which the tree's
# folder is put in front of.
export PKG_CONFIG_SYSROOT_DIR=$tree PKG_CONFIG_LIBDIR=$tree/$lib/pkgconfig
read -ra flags <<<"$(pkg-config --cflags --libs lapi_r)"
"$machine-linux-gnu-gcc" -O1 -fno-pie -no-pie -o "$tree/Put" "$tree/usr/share/doc/liblapi-r-dev/examples/lapi_api/Put.c" "${flags[@]}"
run=("qemu-${machine/powerpc64le/ppc64le}" -L "/usr/$machine-linux-gnu" -E "LD_LIBRARY_PATH=$tree/$lib")
ran=$(timeout -k 10 $((60 * ${TEST_PATIENCE-2})) "$TEST_POE" "${run[@]}" "$tree/Put" -procs 2)
grep -q 'task 1: the board is as it was put' <<<"$ran" || wrong "the sample said: $ran"
info=$(timeout -k 10 $((60 * ${TEST_PATIENCE-2})) "${run[@]}" "$tree/usr/bin/lapi_info")
grep -q "$lib/liblapi_r.so.1" <<<"$info" || wrong "lapi_info found another library: $info"
echo "== cross-deb: $machine: the packages are right, and the sample in them runs"
