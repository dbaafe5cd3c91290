#!/usr/bin/env bash
# Compiles the two samples with the installed headers, and sends from one to the other:
# demo.sh PREFIX
set -eu
prefix=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
read -ra flags < <(pkg-config --cflags --libs openlapi-netio3)
for sample in send receive; do
    "${CXX:-g++}" -std=c++20 "$here/samples/$sample.cpp" -o "$work/$sample" "${flags[@]}"
done
exec 3< <(exec "$work/receive" "unix:$work/socket")
read -r address <&3
"$work/send" "$address" 1000
read -r received <&3
echo "received: $received"
