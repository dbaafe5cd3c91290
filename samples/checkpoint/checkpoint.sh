#!/bin/sh
# Has the last task of Outside saved: checkpoint.sh CHECKPOINTER [ARGUMENT...]
# Runs this command with the number of the process as one more argument, while the task is away. If
# the command restores the process from an image in the end, that has the same number.
until [ -e Outside.pid ]; do sleep 0.1; done
process=$(cat Outside.pid)
rm -f Outside.away
kill -USR1 "$process" || exit
until [ -e Outside.away ]; do sleep 0.1; done
"$@" "$process"
status=$?
kill -USR2 "$process" || exit
rm -f Outside.pid Outside.away
exit "$status"
