# shellcheck shell=bash
# Two hosts on this machine: network namespaces with their own names and addresses, joined by a
# virtual link. Sourced by bash scripts.
#
#   hosts_make FOLDER            makes node0 (10.78.0.1) and node1 (10.78.0.2); 1 where this machine does not allow it: the file
#                                FOLDER/why has the reason. FOLDER exists, and not below /tmp, which could be another one on the hosts
#   hosts_run NUMBER COMMAND...  runs a command on a host
#   hosts_lose PERCENT           each host loses this part of the datagrams that arrive; 0: none
#   hosts_clear                  ends all that runs on the hosts
#   hosts_end                    ends the hosts, and all that runs there
#
# FOLDER/hosts has the two names, FOLDER/ssh is a script in the place of ssh. Root makes namespaces;
# other users make them inside of a user namespace, where the system allows it.

hosts_pids=()
hosts_user=()                                 # the options for the user namespace; root needs none
hosts_root=()

hosts_make() {
    hosts_folder=$1
    local number
    printf '127.0.0.1 localhost\n10.78.0.1 node0\n10.78.0.2 node1\n' >"$hosts_folder/names"
    printf 'node0\nnode1\n' >"$hosts_folder/hosts"
    mkdir -p "$hosts_folder/sys"
    if [ "$(id -u)" -eq 0 ]; then
        hosts_start 0 env && hosts_start 1 env || return 1
    else
        hosts_root=(--map-root-user)
        hosts_start 0 env || return 1
        hosts_user=("--user=/proc/${hosts_pids[0]}/ns/user" --preserve-credentials)
        hosts_root=()
        hosts_start 1 nsenter "${hosts_user[@]}" || return 1
    fi
    hosts_run 0 ip link add name rail0 type veth peer name rail0 netns "${hosts_pids[1]}" 2>>"$hosts_folder/why" || return 1
    for number in 0 1; do
        hosts_run $number ip address add "10.78.0.$((number + 1))/24" dev rail0 || return 1
        hosts_run $number ip link set rail0 up || return 1
    done 2>>"$hosts_folder/why"
    # The kernel may take a second to mark an interface as running; libfabric does not
    # use it before.
    for _ in $(seq 100); do
        ! hosts_run 0 ip -o link show rail0 | grep -q 'state UP' || ! hosts_run 1 ip -o link show rail0 | grep -q 'state UP' || break
        sleep 0.05
    done
    cat >"$hosts_folder/ssh" <<END_OF_SSH
#!/bin/sh
# [-options] HOST COMMAND...: a command on a host, from the other one
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1; shift
case \$host in
node0 | 10.78.0.1) exec nsenter $(hosts_namespaces 0) sh -c "\$*" ;;
node1 | 10.78.0.2) exec nsenter $(hosts_namespaces 1) sh -c "\$*" ;;
esac
echo "no host \$host" >&2; exit 255
END_OF_SSH
    chmod 755 "$hosts_folder/ssh"
}

hosts_run() {
    local number=$1
    shift
    # shellcheck disable=SC2046 # options
    nsenter "${hosts_user[@]}" $(hosts_namespaces "$number") "$@"
}

hosts_lose() {
    local number rules="table inet loss; delete table inet loss"
    [ "$1" -eq 0 ] || rules="$rules; table inet loss { chain input { type filter hook input priority 0; meta l4proto udp numgen random mod 100 < $1 drop; }; }"
    for number in 0 1; do hosts_run $number env PATH="$PATH:/usr/sbin:/sbin" nft "$rules" || return 1; done
}

# Ends all that runs on the hosts: a program whose peer has failed may wait for it without end.
hosts_clear() {
    local pid net process
    for pid in "${hosts_pids[@]}"; do
        net=$(readlink "/proc/$pid/ns/net" 2>/dev/null) || continue
        # It may not have left this machine's network yet.
        [ "$net" != "$(readlink /proc/self/ns/net)" ] || continue
        for process in /proc/[0-9]*; do
            case " ${hosts_pids[*]} " in *" ${process#/proc/} "*) continue ;; esac
            [ "$(readlink "$process/ns/net" 2>/dev/null)" != "$net" ] || kill -KILL "${process#/proc/}" 2>/dev/null || true
        done
    done
}

hosts_end() {
    local pid
    hosts_clear
    for pid in "${hosts_pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
}

hosts_namespaces() {
    local of=/proc/${hosts_pids[$1]}/ns
    echo "--net=$of/net --mount=$of/mnt --uts=$of/uts"
}

# hosts_start NUMBER COMMAND...: starts the process that keeps the namespaces of node NUMBER, by
# COMMAND, which enters others before.
# Without its own /sys a host would see the interfaces of the machine there.
hosts_start() {
    local number=$1
    shift
    cat >"$hosts_folder/host$number" <<END_OF_HOST
set -e
hostname node$number
mount --bind "$hosts_folder/names" /etc/hosts
if mount -t sysfs sysfs "$hosts_folder/sys" 2>/dev/null; then mount --rbind "$hosts_folder/sys" /sys; fi
ip link set lo up
touch "$hosts_folder/ready$number"
exec setpriv --pdeathsig KILL sleep infinity
END_OF_HOST
    "$@" unshare --net --mount --uts "${hosts_root[@]}" sh "$hosts_folder/host$number" 2>>"$hosts_folder/why" &
    hosts_pids[number]=$!
    disown "${hosts_pids[number]}"            # its end is no news
    for _ in $(seq 100); do
        [ ! -e "$hosts_folder/ready$number" ] || return 0
        kill -0 "${hosts_pids[number]}" 2>/dev/null || break
        sleep 0.05
    done
    return 1
}
