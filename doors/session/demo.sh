#!/usr/bin/env bash
# A service and two clients of it: demo.sh PREFIX, with the build's programs in $RELEASE.
set -eu
work=$(mktemp -d)
exec 3< <(exec "$RELEASE/session_service" serve "$work/service")
service=$!
trap 'kill "$service"; rm -rf "$work"' EXIT
for _ in $(seq 100); do
    [ ! -S "$work/service" ] || break
    sleep 0.1
done
for _ in 1 2; do
    "$RELEASE/session_service" call "$work/service"
    read -r line <&3
    echo "the memory of the service: $line"
done
