#!/usr/bin/env bash
# Installs what packaging/install/manifest lists, takes it away again, or lists it:
#   install.sh install|uninstall|list
# PREFIX, DESTDIR, VERSION, RELEASE, RELEASE32, COMPAT and CATALOGS come from the environment, as the Makefile sets them.
set -eu
cd "$(dirname "$0")/../.."
to=${DESTDIR-}$PREFIX
RELEASE32=${RELEASE32-}

# each FUNCTION: calls it with PACKAGE HOW SOURCE TARGET for every thing, patterns expanded.
each() {
    local package how source target file
    while read -r package how source target; do
        case $package in '' | '#'*) continue ;; esac
        for name in RELEASE RELEASE32 COMPAT CATALOGS VERSION; do
            source=${source//"{$name}"/${!name}}
            target=${target//"{$name}"/${!name}}
        done
        case $target in
        */)
            for file in $source; do
                "$1" "$package" "$how" "$file" "$target${file##*/}"
            done
            ;;
        *'*'*)
            for file in $source; do
                "$1" "$package" "$how" "${file##*/}" "${target/'*'/${file##*/}}"
            done
            ;;
        *) "$1" "$package" "$how" "$source" "$target" ;;
        esac
    done <packaging/install/manifest
}

is_there() { # is_there HOW SOURCE TARGET: whether it is to be installed
    case $1 in
    '?link') [ -e "${3%/*}/$2" ] ;;
    '?'*) [ -e "$2" ] ;;
    esac
}

put() { # put PACKAGE HOW SOURCE TARGET
    local how=$2 source=$3 target=$to/$4
    if ! is_there "$how" "$source" "$target"; then
        # What an earlier installation had here would be out of date.
        take "$@"
        return
    fi
    how=${how#'?'}
    mkdir -p "${target%/*}"
    case $how in
    link)
        [ "$(readlink "$target")" = "$source" ] || ln -sfn "$source" "$target"
        ;;
    fill)
        sed -e "s|@PREFIX@|$PREFIX|g" -e "s|@VERSION@|$VERSION|g" "$source" >"$target.new"
        chmod 644 "$target.new"
        mv -f "$target.new" "$target"
        ;;
    *)
        # -C leaves a file alone that is the same already, so that what depends on its time is not made again.
        install -C -m "$how" "$source" "$target"
        ;;
    esac
}

take() { # take PACKAGE HOW SOURCE TARGET
    rm -f "$to/$4"
    # A folder goes with the last file in it, but not those that everybody's files are in: bin, lib, include, share.
    local folder=${4%/*}
    while [ "$folder" != "${folder%/*}" ]; do
        rmdir "$to/$folder" 2>/dev/null || break
        folder=${folder%/*}
    done
}

list() { # list PACKAGE HOW SOURCE TARGET
    ! is_there "$2" "$3" "$to/$4" || echo "$1 $4"
}

case ${1-} in
install) each put ;;
uninstall) each take ;;
list) each list ;;
*)
    echo "usage: $0 install|uninstall|list" >&2
    exit 2
    ;;
esac
