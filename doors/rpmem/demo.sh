#!/usr/bin/env bash
# A pool with a replica on another host is written, lost and restored: demo.sh PREFIX. The hosts are
# network namespaces of this machine (ci/hosts.sh). Where pmempool is installed, a pool of
# libpmemobj is, too.
set -eu
prefix=$1
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../ci/hosts.sh"
# Not below /tmp, which could be another one on the hosts.
work=$(mktemp -d /var/tmp/rpmem-demo-XXXXXX)
trap 'hosts_end; rm -rf "$work"' EXIT
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
read -ra flags < <(pkg-config --cflags --libs librpmem)
"${CC:-cc}" -Wall "$here/samples/replica.c" -o "$work/replica" "${flags[@]}"

mkdir "$work/sets"
printf 'PMEMPOOLSET\n2M %s\n' "$work/text.part" >"$work/sets/text.set"
printf 'PMEMPOOLSET\n16M %s\n' "$work/replica.part" >"$work/sets/replica.set"
printf 'PMEMPOOLSET\n16M %s\nREPLICA node1 replica.set\n' "$work/pool.part" >"$work/pool.set"
printf 'poolset-dir = %s\nlog-file = %s\nuse-syslog = no\n' "$work/sets" "$work/log" >"$work/rpmemd.conf"
export RPMEM_CMD="$prefix/bin/rpmemd -c $work/rpmemd.conf" RPMEM_SSH=$work/ssh RPMEM_LOG_LEVEL=3 RPMEM_LOG_FILE=$work/steps
if hosts_make "$work"; then
    there() { hosts_run 0 "$@"; }
else
    echo "no network namespaces here ($(tail -n 1 "$work/why")): the daemon runs on this host"
    # shellcheck disable=SC2016 # for the script
    printf '#!/bin/sh\nfor command; do :; done\nexec sh -c "$command"\n' >"$work/ssh"
    chmod 755 "$work/ssh"
    there() { "$@"; }
fi

there "$work/replica" save node1 text.set "what a program had in its memory"
echo "restored from the replica: $(there "$work/replica" restore node1 text.set)"
grep -o 'a session with.*' "$work/steps" | head -n 1
if command -v pmempool >/dev/null; then
    there pmempool create --layout=demo obj "$work/pool.set"
    rm "$work/pool.part"
    echo "the part of pool.set is lost"
    there pmempool sync -v "$work/pool.set"
    there pmempool info "$work/pool.set" | grep -E '^(Signature|Layout|Last shutdown)'
else
    echo "pmempool is not installed: no pool of libpmemobj"
fi
