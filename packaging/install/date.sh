#!/usr/bin/env bash
# Prints the date that packages of these sources have, in seconds since 1970: SOURCE_DATE_EPOCH, or
# the commit's, which the source tarball has in packaging/commit, or now. build.rs does the same.
set -eu
cd "$(dirname "$0")/../.."
if [ -n "${SOURCE_DATE_EPOCH-}" ]; then
    echo "$SOURCE_DATE_EPOCH"
elif [ -e .git ] && git log -1 --format=%ct 2>/dev/null; then
    :
else
    read -r commit seconds <packaging/commit
    case $commit in
    '$'*) date +%s ;;
    *) echo "$seconds" ;;
    esac
fi
