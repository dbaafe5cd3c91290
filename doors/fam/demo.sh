#!/usr/bin/env bash
# A note in persistent memory outlives the program that wrote it, and a daemon that is killed:
# demo.sh PREFIX
set -eu
prefix=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill "$daemon"; rm -rf "$work"' EXIT
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib OPENFAM_ROOT=$work
read -ra plain < <(pkg-config --cflags --libs openfam)
read -ra c < <(pkg-config --cflags --libs openfam_c)
"${CXX:-g++}" -std=c++14 "$here/samples/get.cpp" -o "$work/get" "${plain[@]}"
"${CC:-cc}" "$here/samples/note.c" -o "$work/note" "${c[@]}" -Wl,-rpath-link,"$prefix/lib"

port=$((20000 + $$ % 10000))
mkdir "$work"/{config,memory,metadata,backups}
printf '%s\n' "fam_client_interface_service_address: 127.0.0.1:$port" "default_memory_type: persistent" \
    >"$work/config/fam_pe_config.yaml"
echo "memsrv_list: [0:127.0.0.1:$port]" >"$work/config/fam_client_interface_config.yaml"
printf '%s\n' "Memservers:" " 0:" "  memory_type: persistent" "  fam_path: $work/memory" \
    "fam_backup_path: $work/backups" >"$work/config/fam_memoryserver_config.yaml"
echo "metadata_path: $work/metadata" >"$work/config/fam_metadata_config.yaml"
start() {
    "$prefix/bin/openfamd" --config "$work/config" >"$work/says" 2>>"$work/log" &
    daemon=$!
    until grep -q ready "$work/says"; do
        kill -0 "$daemon" || { cat "$work/log" && exit 1; }
        sleep 0.1
    done
}

start
"$work/note" write "this outlives what wrote it"
"$work/note" read
kill -9 "$daemon"
wait "$daemon" 2>>"$work/log" || true
start
echo "the daemon was killed, and started again"
"$work/note" read
"$work/note" remove
"$work/get"
