#!/bin/sh
# Starts the tasks of a job by hand, on several hosts: udp.sh PROGRAM FILE
# [list|handler|any-list|any-handler]
#
# Each line of FILE has the IP address and the port of one task. The task is started there by $RSH
# (ssh when it is not set), in this folder, which all hosts must have; a task at a loopback address
# is started here. The exit status is 0 when that of every task is 0.
program=$1
file=$2
way=${3:-list}
tasks=$(grep -c . "$file")
# All tasks of the job have the same, and no other job of this user that uses the same secret.
partition=$$

started=
task=0
while read -r address port; do
    command="cd '$PWD' && MP_CHILD=$task MP_PROCS=$tasks MP_PARTITION=$partition exec '$program' '$file' $way"
    case $address in
    127.* | ::1) sh -c "$command" < /dev/null & ;;
    *) ${RSH:-ssh} "$address" "$command" < /dev/null & ;;
    esac
    started="$started $!"
    task=$((task + 1))
done < "$file"

status=0
for process in $started; do
    wait "$process" || status=$?
done
exit "$status"
