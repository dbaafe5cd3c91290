#!/usr/bin/env bash
# Compiles two of the samples, and runs each with one task on each of two hosts: ci/demo-net.sh PREFIX
#
# The hosts are network namespaces of this machine, with their own names and addresses, joined by a virtual link. poe starts the tasks
# by MPICH's Hydra, which reaches a host by a script in the place of ssh. Root makes namespaces; other users make them inside of
# a user namespace, where the system allows it. Where that is not possible, both tasks run here, and use the network to talk.
set -eu
cd "$(dirname "$0")/.."
prefix=$(cd "$1" && pwd)
# Not below /tmp, which could be another one on the hosts.
work=$(mktemp -d /var/tmp/lapi-demo-net-XXXXXX)
chmod 755 "$work"
pids=()
cleanup() {
    for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

user=()                                       # the options for the user namespace; root needs none
user_of() { [ "$(id -u)" -eq 0 ] || user=("--user=/proc/$1/ns/user" --preserve-credentials); }
namespaces() { echo "--net=/proc/$1/ns/net --mount=/proc/$1/ns/mnt --uts=/proc/$1/ns/uts"; }

# host NUMBER COMMAND...: starts the process that keeps the namespaces of node NUMBER, by COMMAND, which makes them.
host() {
    local number=$1
    shift
    cat >"$work/host$number" <<END
set -e
hostname node$number
mount --bind "$work/names" /etc/hosts
ip link set lo up
touch "$work/ready$number"
exec setpriv --pdeathsig KILL sleep infinity
END
    "$@" unshare --net --mount --uts ${root:+"$root"} sh "$work/host$number" 2>>"$work/why" &
    pids[number]=$!
    disown "${pids[number]}"                  # its end is no news
    for _ in $(seq 100); do
        [ ! -e "$work/ready$number" ] || return 0
        kill -0 "${pids[number]}" 2>/dev/null || break
        sleep 0.05
    done
    return 1
}

# make_hosts: node0 and node1, and the link between them. 1 when this machine does not allow it; the file "why" has the reason.
make_hosts() {
    printf '127.0.0.1 localhost\n10.78.0.1 node0\n10.78.0.2 node1\n' >"$work/names"
    if [ "$(id -u)" -eq 0 ]; then
        root=
        host 0 env && host 1 env || return 1
    else
        root=--map-root-user
        host 0 env || return 1
        user_of "${pids[0]}"
        root=
        host 1 nsenter "${user[@]}" || return 1
    fi
    local number
    in_host 0 ip link add name rail0 type veth peer name rail0 netns "${pids[1]}" || return 1
    for number in 0 1; do
        in_host $number ip address add "10.78.0.$((number + 1))/24" dev rail0 || return 1
        in_host $number ip link set rail0 up || return 1
    done 2>>"$work/why"
    cat >"$work/ssh" <<END
#!/bin/sh
# [-options] HOST COMMAND...: a command on a host, from the other one
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1; shift
case \$host in
node0) exec nsenter $(namespaces "${pids[0]}") sh -c "\$*" ;;
node1) exec nsenter $(namespaces "${pids[1]}") sh -c "\$*" ;;
esac
echo "no host \$host" >&2; exit 255
END
    chmod 755 "$work/ssh"
}

in_host() { # in_host NUMBER COMMAND...
    local number=$1
    shift
    # shellcheck disable=SC2046 # options
    nsenter "${user[@]}" $(namespaces "${pids[number]}") "$@" 2>>"$work/why"
}

for sample in Am Put; do
    echo
    echo "== demo-net: mpcc_r samples/lapi_api/$sample.c -o $sample"
    "$prefix/bin/mpcc_r" "samples/lapi_api/$sample.c" -o "$work/$sample"
done

if make_hosts; then
    printf 'node0\nnode1\n' >"$work/hosts"
    for sample in Am Put; do
        echo
        echo "== demo-net: on node0: poe ./$sample -hostfile hosts -labelio yes; the hosts: $(paste -sd' ' "$work/hosts")"
        nsenter "${user[@]}" $(namespaces "${pids[0]}") \
            env HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC="$work/ssh" \
            sh -c 'cd "$1" && exec "$2/bin/poe" "./$3" -hostfile hosts -launcher hydra -labelio yes' sh "$work" "$prefix" "$sample" \
            </dev/null
    done
    echo
    echo "== demo-net: Am and Put have each run with 2 tasks, on 2 hosts"
else
    echo
    echo "== demo-net: this machine does not let you make network namespaces ($(tail -n 1 "$work/why"))"
    echo "== demo-net: the same two tasks run here, and talk over the loopback"
    for sample in Am Put; do
        echo
        echo "== demo-net: LAPI_USE_SHM=no poe ./$sample -procs 2 -labelio yes"
        (cd "$work" && LAPI_USE_SHM=no "$prefix/bin/poe" "./$sample" -procs 2 -labelio yes </dev/null)
    done
    echo
    echo "== demo-net: Am and Put have each run with 2 tasks, over the loopback"
fi
