#!/bin/sh
# Starts a program again as often as it ends with status 75: again.sh PROGRAM [ARGUMENT...]
# As poe's program it is the task: as long as it runs, the task has not ended.
while true; do
    "$@"
    status=$?
    [ "$status" -eq 75 ] || exit "$status"
done
