#!/usr/bin/env bash
# Links libopenfam.so.3 from the archive that cargo has built, in the folder RELEASE, and the
# classes of shim, and libopenfam_c.so over them. What they export is in symbols.txt and
# include/fam/fam_c.h.
set -eu
cd "$(dirname "$0")"
archive=$RELEASE/libfam.a library=$RELEASE/libopenfam.so.3 plain=$RELEASE/libopenfam_c.so
fresh() {
	for from in "$archive" symbols.txt link.sh include/fam/* shim/*; do
		[ "$1" -nt "$from" ] || return 1
	done
}
fresh "$library" && fresh "$plain" && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{ echo '{ global:' && sed 's/$/;/' symbols.txt && echo 'local: *; };'; } >"$work/openfam.map"
{ echo '{ global: c_fam_*; local: *; };'; } >"$work/openfam_c.map"
# Sources are named as packaging/install/paths.sh has it: the library is the same in every folder.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' ../../Cargo.toml | head -n 1)
map=-ffile-prefix-map=$(cd ../.. && pwd -P)=/usr/src/openlapi-$version
# The functions of a sanitizer are the program's: ci/sanitize.sh links them to it.
read -ra sanitizer <<<"${TEST_CFLAGS-}"
defs=(-Wl,-z,defs)
[ ${#sanitizer[@]} -eq 0 ] || defs=()
compile() {
	${CXX:-c++} "$map" "${sanitizer[@]}" -std=c++14 -O2 -g -fPIC -Wall -Wextra -Wpedantic -Iinclude -c "$1" -o "$work/$(basename "$1").o"
}
for source in shim/*.cpp; do compile "$source"; done
# Names of their own at first, so that a program that runs keeps the library that it has mapped. The
# threads and the buffers of sessions outlive a dlclose.
common=(-shared "${defs[@]}" -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,--gc-sections)
${CXX:-c++} "${common[@]}" -o "$library.new" -Wl,-soname,libopenfam.so.3 \
	-Wl,--version-script="$work/openfam.map" "$work"/{fam,data,descriptors,exception}.cpp.o \
	"$archive" -lpthread -ldl -lm -lgcc_s
mv "$library.new" "$library"
${CXX:-c++} "${common[@]}" -o "$plain.new" -Wl,-soname,libopenfam_c.so \
	-Wl,--version-script="$work/openfam_c.map" "$work"/c{,_data}.cpp.o "$library"
mv "$plain.new" "$plain"
