#!/usr/bin/env bash
# Installs the Debian packages of a folder in a fresh Debian, uses them there, and removes them:
# deb-test.sh FOLDER
#
# The fresh system is made by debootstrap from the mirror that this machine's apt uses, and kept as
# FOLDER/../debian-SUITE.tar for the next time. Needs root.
set -eu
cd "$(dirname "$0")/.."
packages=$(cd "$1" && pwd)
started=$SECONDS
if [ "$(id -u)" -ne 0 ]; then
    echo "ci/deb-test.sh: a fresh system can be made by root only" >&2
    exit 1
fi
# Mounts of the fresh system are private to this script, and end with it.
if [ -z "${DEB_TEST_INSIDE-}" ]; then
    DEB_TEST_INSIDE=yes exec unshare --mount --propagation private "$0" "$packages"
fi
say() { echo "== deb-test: $* ($((SECONDS - started)) s)"; }

say "lintian"
# The maintainer is the user that builds the packages.
lintian --allow-root --fail-on error,warning \
    --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog "$packages"/*.deb

# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
base=${packages%/*}/debian-$suite.tar
work=$(mktemp -d)
trap 'umount -l "$work/root/proc" "$work/root/dev" 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
root=$work/root
mkdir "$root"
if [ ! -f "$base" ]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
        awk -v suite="$suite" '$2 == suite { print $1; exit }')
    proxy=$(apt-config shell proxy Acquire::http::Proxy)
    eval "$proxy"
    [ -z "${proxy-}" ] || export http_proxy=$proxy
    say "debootstrap of $suite"
    debootstrap --variant=minbase --include=gcc,libc6-dev,make "$suite" "$root" "$mirror" >"$work/log" 2>&1 ||
        { tail -20 "$work/log" >&2; exit 1; }
    rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
    tar -C "$root" -cf "$base.new" --one-file-system .
    mv "$base.new" "$base"
else
    say "a fresh $suite, as it was made before"
    tar -C "$root" -xf "$base"
fi

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C "$@"; }
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"

# All files except those that dpkg and the loader write about packages.
tree() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./sys -o -path ./tmp -o -path ./var/lib/dpkg \
        -o -path ./var/log -o -path ./var/cache \) -prune -o ! -name ld.so.cache -printf '%p %y %l\n' | LC_ALL=C sort)
}
tree >"$work/before"

say "installing"
mkdir "$root/tmp/packages"
cp "$packages"/*.deb "$root/tmp/packages"
inside sh -c 'dpkg -i /tmp/packages/*.deb' >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
lib=/lib/$(gcc -print-multiarch)
inside ldconfig -p | grep -Eq "liblapi_r.so.1 .*=> (/usr)?$lib/liblapi_r.so.1"
# Those of the doors are among them.
mapfile -t names < <(for package in "$packages"/*.deb; do dpkg-deb -f "$package" Package; done)
inside dpkg --verify "${names[@]}"
# Each program and library finds what it needs in a system with little else.
needs=$(inside dpkg -L "${names[@]}" | grep -E '\.so(\.|$)|/bin/' | sort -u | while read -r file; do
    inside ldd "$file" 2>/dev/null </dev/null | sed "s#^#$file: #"
done)
[ -n "$needs" ]
! grep -F 'not found' <<<"$needs" || { echo "ci/deb-test.sh: a dependency is missing" >&2; exit 1; }

say "using"
cp -r "$root/usr/share/doc/liblapi-r-dev/examples/lapi_api" "$root/tmp/lapi_api"
inside make -s -C /tmp/lapi_api Put Am >/dev/null
ran=$(inside sh -c 'cd /tmp/lapi_api && poe ./Put -procs 2 && poe ./Am -procs 4')
echo "$ran"
grep -q 'task 1: the board is as it was put' <<<"$ran"
grep -q 'task 3: the message is as it was sent' <<<"$ran"
inside sh -c 'cd /tmp && cc /usr/share/openlapi/samples/gm/ring.c -o ring -lgm && poe ./ring -procs 3'
# The daemon is started as on another host, by what stands for ssh.
mkdir "$root/tmp/sets"
printf 'PMEMPOOLSET\n2M /tmp/text.part\n' >"$root/tmp/sets/text.set"
# shellcheck disable=SC2016 # for the script
printf '#!/bin/sh\nfor command; do :; done\nexec sh -c "$command"\n' >"$root/tmp/ssh"
chmod 755 "$root/tmp/ssh"
inside cc /usr/share/openlapi/samples/rpmem/replica.c -o /tmp/replica -lrpmem
replica() { inside env RPMEM_SSH=/tmp/ssh RPMEM_CMD="rpmemd --poolset-dir=/tmp/sets" /tmp/replica "$@"; }
replica save host text.set "what a program had in its memory"
replica restore host text.set | grep -q "what a program had in its memory"
# A note in persistent memory outlives the program that wrote it, and its daemon. Port $1 is of this
# machine: the fresh system has its network.
# shellcheck disable=SC2016
read=$(inside sh -euc '
    cd /tmp && mkdir -p pool/config pool/memory pool/metadata
    cc /usr/share/openlapi/samples/fam/note.c -o note -lopenfam_c
    export OPENFAM_ROOT=/tmp/pool
    cd pool/config
    echo "fam_client_interface_service_address: 127.0.0.1:$1" >fam_pe_config.yaml
    echo "memsrv_list: [0:127.0.0.1:$1]" >fam_client_interface_config.yaml
    printf "Memservers:\n 0:\n  memory_type: persistent\n  fam_path: /tmp/pool/memory\n" >fam_memoryserver_config.yaml
    echo "metadata_path: /tmp/pool/metadata" >fam_metadata_config.yaml
    for words in "write kept" read; do
        : >/tmp/says
        openfamd --config /tmp/pool/config >/tmp/says 2>>/tmp/log &
        trap "kill $!" EXIT
        until grep -q ready /tmp/says; do kill -0 $! || exit 1; sleep 0.1; done
        /tmp/note $words
        trap - EXIT
        kill $!
        wait $!
    done' sh $((20000 + $$ % 10000))) || { cat "$root/tmp/log" >&2; exit 1; }
echo "$read"
[ "$read" = 'kept (read 0 times before)' ]
inside lapi_info >"$work/log" || { cat "$work/log" >&2; exit 1; }
grep -q "/usr$lib/liblapi_r.so.1" "$work/log"
grep -q 'shared memory: usable' "$work/log"
german=$(inside env LC_ALL=de_DE.UTF-8 MP_PROCS=2 MP_INFOLEVEL=1 /tmp/lapi_api/Put 2>&1 || true)
grep -qF "$(sed -n 's/^510 "\(.*\)"$/\1/p' packaging/catalogs/de.msg)" <<<"$german" || { echo "$german" >&2; exit 1; }

say "removing"
inside dpkg --purge "${names[@]}" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
tree >"$work/after"
diff "$work/before" "$work/after" || { echo "ci/deb-test.sh: the packages leave something behind" >&2; exit 1; }
say "installed, used and removed in a fresh Debian"
