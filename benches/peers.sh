#!/bin/sh
# Fetches the peers with which the library is compared, from the registry of Python packages:
# benches/peers.sh [--there] FOLDER
#
# Each is unpacked into a folder of its own below FOLDER, by its version: once. It prints a line for
# each that is there:
# NAME VERSION FOLDER INCLUDES. Without a network, and without the packages, it says so and
# prints nothing. With --there it fetches nothing, and prints those that were fetched before.
set -eu

there=no
[ "$1" != --there ] || { there=yes && shift; }
folder=$1
pip=$folder/venv/bin/pip
mkdir -p "$folder/wheels"

say() { echo "peers: $*" >&2; }

# fetch PACKAGE VERSION: unpacks it, unless that is done
fetch() {
    at=$folder/$1-$2
    [ ! -e "$at/complete" ] || return 0
    [ $there = no ] || return 1
    [ -x "$pip" ] || python3 -m venv "$folder/venv" >"$folder/log" 2>&1 || return 1
    say "fetching $1 $2"
    "$pip" --disable-pip-version-check download --quiet --retries 1 --timeout 20 --no-deps --only-binary :all: \
        --dest "$folder/wheels" "$1==$2" >"$folder/log" 2>&1 || return 1
    rm -rf "$at"
    mkdir "$at"
    for wheel in "$folder/wheels/$(echo "$1" | tr - _)-$2"-*.whl; do
        python3 -m zipfile -e "$wheel" "$at" || return 1
        rm "$wheel"
    done
    # Programs have lost that they are.
    chmod -R u+rwx "$at"
    touch "$at/complete"
}

# have NAME VERSION SUBFOLDER PACKAGE...: one peer of one or more packages, of which the last one
# has the headers
have() {
    name=$1 version=$2 below=$3
    shift 3
    for package in "$@"; do
        if ! fetch "$package" "$version"; then
            [ $there = yes ] || say "NO PEER: $name $version cannot be fetched: $(tail -n 1 "$folder/log")"
            return 0
        fi
    done
    for found in "$folder/$1-$version"/$below; do
        for includes in "$folder/$package-$version"/$below/include; do
            echo "$name $version $found $includes"
        done
    done
}

have ucx 1.22.0 libucx libucx-cu12
have mpich 5.0.2 '*.data/data' mpich
have ompi 5.0.11 '*.data/data' openmpi
have impi 2021.19.0 '*.data/data' impi-rt impi-devel
