#!/usr/bin/env bash
# Looks into the Debian packages for a machine of another kind, those of the doors too, unpacks
# them, and runs a sample with the library and programs of the doors from there, under qemu:
# cross-deb.sh FOLDER MACHINE, for instance
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
field() { dpkg-deb -f "$1" "$2"; }

# Those of the doors are named in their packaging/control. What each must have, of those with code.
mapfile -t names < <(printf '%s\n' liblapi-r1 liblapi-r-dev openlapi && sed -n 's/^Package: //p' doors/*/packaging/control)
declare -A files=(
    [liblapi-r1]="$lib/liblapi_r.so.1 $lib/liblapiprof.so.1"
    [liblapi-r-dev]="$lib/liblapi_r.so $lib/libaixcompat.a $lib/pkgconfig/lapi_r.pc $lib/cmake/lapi/lapi-config.cmake usr/include/lapi.h usr/include/lapif.h usr/bin/mpcc_r"
    [openlapi]="usr/bin/poe usr/bin/lapi_info usr/bin/lapi_prof"
    [libopenlapi-fam3]="$lib/libopenfam.so.3 $lib/libopenfam_c.so"
    [openlapi-openfamd]="usr/bin/openfamd"
    [libopenlapi-gm]="$lib/libgm.so"
    [libopenlapi-gm-dev]="$lib/libgm.a usr/bin/gm_board_info"
    [libopenlapi-netio3-0]="$lib/libopenlapi_netio3.so.0"
    [libopenlapi-rpmem1]="$lib/librpmem.so.1"
    [openlapi-rpmemd]="usr/bin/rpmemd"
)
for package in "${!files[@]}"; do
    [[ " ${names[*]} " == *" $package "* ]] || wrong "no control file names $package"
done
debs=("$packages"/*_"$arch.deb")
[ "${#debs[@]}" -eq "${#names[@]}" ] || wrong "${#debs[@]} packages, and the control files name ${#names[@]}"
for deb in "${debs[@]}"; do
    package=$(field "$deb" Package)
    [[ " ${names[*]} " == *" $package "* ]] || wrong "no control file names $package"
    [ "$(field "$deb" Architecture)" = "$arch" ] || wrong "$package is for $(field "$deb" Architecture)"
    held=$(dpkg-deb -c "$deb" | awk '{ print $6 }')
    for file in ${files[$package]-}; do
        grep -qxF "./$file" <<<"$held" || wrong "$package has no $file"
    done
    ! grep -E '^\./usr/lib/[^/]+$' <<<"$held" || wrong "$package has files outside of $lib"
    dpkg-deb -x "$deb" "$tree"
    depends=$(field "$deb" Depends)
    version=$(field "$deb" Version)
    case $package in
    # The library that the package is of, or that its programs use.
    *-dev | openlapi) grep -q "^lib[a-z0-9-]* (= $version)" <<<"$depends" || wrong "$package depends on $depends" ;;
    *) grep -Eq '^libc6 \(>= 2\.[0-9]+\)' <<<"$depends" || wrong "$package depends on $depends" ;;
    esac
    ! grep -E ':|cross|amd64' <<<"$depends" || wrong "$package depends on packages for cross compilers"
    # A library's files lie in folders of their machine.
    case $package in
    *-dev | openlapi*) ;;
    *) [ "$(field "$deb" Multi-Arch)" = same ] || wrong "$package of two machines cannot be installed together" ;;
    esac
done
objects=0
while read -r file; do
    case $(head -c 7 "$file" | tr -d '\0') in
    $'\x7fELF'*) objects=$((objects + 1)) ;;
    '!<arch>') ;;
    *) continue ;;
    esac
    # An archive has a header for each of its objects; the empty ones have none.
    ! readelf -h "$file" | grep 'Machine:' | grep -v "Machine: *$elf\$" || wrong "$file is for another machine"
done < <(find "$tree" -type f)
[ "$objects" -ge 15 ] || wrong "$objects files of ELF"

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
# The doors: a program in C++ of that machine, and those of the packages.
read -ra flags <<<"$(pkg-config --cflags --libs openfam)"
echo '#include <fam/fam.h>
int main() { openfam::fam fam; }' >"$tree/fam.cpp"
"$machine-linux-gnu-g++" -O1 -o "$tree/fam" "$tree/fam.cpp" "${flags[@]}"
for program in "$tree/fam" "$tree/usr/bin/gm_board_info" "$tree/usr/bin/rpmemd --version"; do
    # shellcheck disable=SC2086 # a program and its argument
    timeout -k 10 $((60 * ${TEST_PATIENCE-2})) "${run[@]}" $program >"$tree/said" 2>&1 ||
        wrong "$program failed: $(cat "$tree/said")"
done
echo "== cross-deb: $machine: the packages are right; the sample in them and programs of the doors run"
