#!/usr/bin/env bash
# What tests have said in these logs that were skipped, sorted and counted: ci/skipped.sh FILE...
# Nothing where none was.
set -eu
said=$(grep -ah '^SKIPPED' "$@" || true)
[ -z "$said" ] || { echo "== skipped: $(wc -l <<<"$said")" && sort <<<"$said" | uniq -c; }
