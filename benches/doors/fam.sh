#!/bin/sh
# Measures OpenFAM beside LAPI in one run: blocking puts, gets and atomics of a program and a daemon
# of this machine beside LAPI_Put and LAPI_Get. `make doors` is run first.
#
# LAPI_STAGE names the installation, RELEASE the folder with the doors' libraries and programs.
set -eu

name="bench of fam" folder=doors
. "$(dirname "$0")/../common.sh"
release=${RELEASE:-$root/target/release}
need_two_processors
# shellcheck disable=SC2086
"$stage/bin/mpcc_r" $cflags "$here/lapi.c" -o "$build/lapi"
c++ -O2 -std=c++14 -Wall -Wextra -I"$root/doors/fam/include" "$here/fam.cpp" "$release/libopenfam.so.3" \
    -Wl,--disable-new-dtags,-rpath,"$release" -o "$build/fam"
work=$(mktemp -d)
: >"$work/says"
daemon=
trap '[ -z "$daemon" ] || kill "$daemon"; rm -rf "$work"' EXIT
port=$((20000 + $$ % 10000))
mkdir "$work/config" "$work/metadata" "$work/backups"
echo "fam_client_interface_service_address: 127.0.0.1:$port" >"$work/config/fam_pe_config.yaml"
echo "memsrv_list: [0:127.0.0.1:$port]" >"$work/config/fam_client_interface_config.yaml"
printf 'Memservers:\n 0:\n  memory_type: volatile\nfam_backup_path: %s/backups\n' "$work" \
    >"$work/config/fam_memoryserver_config.yaml"
echo "metadata_path: $work/metadata" >"$work/config/fam_metadata_config.yaml"
export OPENFAM_ROOT="$work"

"$release/openfamd" --config "$work/config" >"$work/says" 2>"$work/log" &
daemon=$!
until grep -q ready "$work/says"; do
    kill -0 "$daemon" || { cat "$work/log" && exit 1; }
    sleep 0.1
done

echo "load before: $(load)"
for _ in 1 2; do
    timeout 100 "$stage/bin/poe" "$build/lapi" -procs 2 </dev/null
    timeout 100 "$build/fam"
done
echo "load after: $(load)"
