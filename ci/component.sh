# shellcheck shell=bash
# Sourced with COMPONENT SUBCOMMAND: makes sure that cargo has the subcommand, adding the component
# where rustup is.
if ! cargo "$2" --version >/dev/null 2>&1; then
    echo "== the Rust component $1 is missing: adding it"
    rustup component add "$1"
fi
