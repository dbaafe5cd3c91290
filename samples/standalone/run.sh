#!/bin/sh
# Starts the tasks of a job by hand, on this machine: run.sh PROGRAM TASKS
#
# LAPI needs no other settings. The exit status is 0 when that of every task is 0.
program=$1
tasks=${2:-2}

# The job's key, the same for all its tasks: distinguishes it from other jobs of this user that run
# at the same time.
MP_PARTITION=$$
MP_PROCS=$tasks
LAPI_USE_SHM=only
export MP_PARTITION MP_PROCS LAPI_USE_SHM

started=
task=0
while [ "$task" -lt "$tasks" ]; do
    # How many other tasks are on this machine, and which they are: 3:0:2:3 for task 1 of 4.
    others=$((tasks - 1))
    other=0
    while [ "$other" -lt "$tasks" ]; do
        [ "$other" -eq "$task" ] || others=$others:$other
        other=$((other + 1))
    done
    MP_CHILD=$task MP_COMMON_TASKS=$others "$program" &
    started="$started $!"
    task=$((task + 1))
done

status=0
for process in $started; do
    wait "$process" || status=$?
done
exit "$status"
