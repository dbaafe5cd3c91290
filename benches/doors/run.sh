#!/bin/sh
# Measures doors beside LAPI in one run: GM's messages beside LAPI_Amsend, of the same process and
# of one without GM; a session's put and rpmem_persist beside LAPI_Put. make bench-doors builds the
# doors first.
#
# LAPI_STAGE names the installation, RELEASE the folder with the doors' libraries and programs;
# POOL is a folder on memory (/dev/shm) for the pool of rpmem. CALLGRIND=yes counts the instructions
# of a small message of GM instead.
set -eu

name="bench of doors" folder=doors
. "$(dirname "$0")/../common.sh"
release=${RELEASE:-$root/target/release}
poe=$stage/bin/poe

need_two_processors
# shellcheck disable=SC2086
"$stage/bin/mpcc_r" $cflags -I"$root/doors/gm/include" "$here/gm.c" -L"$release" -Wl,-rpath,"$release" -lgm -o "$build/gm"
if [ "${CALLGRIND:-no}" = yes ]; then
    command -v valgrind >/dev/null || { say "no valgrind; ci/deps.sh instructions installs it"; exit 1; }
    for what in send receive; do
        cat >"$build/task.sh" <<SCRIPT
[ "\$MP_CHILD" != 0 ] || exec valgrind --tool=callgrind --toggle-collect='measured*' --callgrind-out-file="$build/out" "$build/gm" $what
exec "$build/gm" $what
SCRIPT
        LAPI_GM_NODES=task MP_INFOLEVEL=0 LAPI_SPIN=100000000 timeout 300 "$poe" sh "$build/task.sh" -procs 2 >"$raw" 2>&1 ||
            { cat "$raw" >&2; exit 1; }
        echo "gm $what: $(($(sed -n 's/^summary: *\([0-9]*\).*/\1/p' "$build/out") / 2000)) instructions a call"
    done
    exit
fi
# shellcheck disable=SC2086
"$stage/bin/mpcc_r" $cflags "$here/lapi.c" -o "$build/lapi"
# shellcheck disable=SC2086
cc $cflags -I"$root/doors/rpmem/include" "$here/rpmem.c" "$release/librpmem.so.1" -Wl,-rpath,"$release" -pthread -o "$build/rpmem"
pool=$(mktemp -d "${POOL:-/dev/shm}/bench-doors.XXXXXX")
trap 'rm -rf "$pool"' EXIT
printf 'PMEMPOOLSET\n64M %s/part\n' "$pool" >"$pool/bench"
printf 'poolset-dir = %s\nlog-file = %s/log\nuse-syslog = no\n' "$pool" "$pool" >"$pool/conf"
# shellcheck disable=SC2016
printf '#!/bin/sh\nfor command; do :; done\nexec sh -c "$command"\n' >"$pool/ssh"
chmod +x "$pool/ssh"
persist() { # persist BYTES THREADS COUNT
    RPMEM_SSH=$pool/ssh RPMEM_CMD="$release/rpmemd -c $pool/conf" PMEM_IS_PMEM_FORCE=1 \
        timeout 100 "$build/rpmem" host bench $((32 << 20)) "$1" "$2" "$3"
}

echo "load before: $(load)"
LAPI_GM_NODES=task timeout 100 "$poe" "$build/gm" pingpong -procs 2 </dev/null >>"$raw" || { cat "$raw" >&2; exit 1; }
timeout 100 "$poe" "$build/lapi" -procs 2 </dev/null >>"$raw" || { cat "$raw" >&2; exit 1; }
cat "$raw"
awk '/^gm pingpong 8:/ { gm = $4 } /^lapi amsend 8:/ { lapi = $4 }
    END { printf "gm pingpong 8 beside LAPI_Amsend alone: %.3f us, %.3f us; ratio %.2f\n", gm, lapi, gm / lapi }' "$raw"
(cd "$root" && cargo run --quiet --release -p openlapi-session --example session_put)
echo "persist: bytes, threads, microseconds a call, MB/s"
persist 8 1 20000
persist 8 4 5000
persist $((1 << 20)) 1 200
echo "load after: $(load)"
