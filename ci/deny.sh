#!/usr/bin/env bash
# Holds the crates of others to deny.toml: licences, versions, where they come from, and, when the
# database of advisories can be reached, known faults.
set -eu
cd "$(dirname "$0")/.."
deny=$(ci/tool.sh cargo-deny 0.20.2)
echo "== deny: licences, bans, sources"
"$deny" --locked --workspace check --hide-inclusion-graph licenses bans sources
# A server that does not reply must not hold everything up.
if timeout 120 "$deny" --locked --workspace fetch db >/dev/null 2>&1; then
    echo "== deny: advisories"
    "$deny" --locked --workspace check --disable-fetch advisories
    echo "== deny: licences, bans, sources and advisories are as deny.toml has them"
else
    echo "== deny: licences, bans and sources are as deny.toml has them; advisories were NOT checked: their database cannot be reached"
fi
