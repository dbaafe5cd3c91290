#!/usr/bin/env bash
# Installs the files that packaging/install/manifest lists, removes them, or lists them:
#   install.sh install|uninstall|list [DOOR...]
# With names of doors, those that doors/DOOR/packaging/manifest lists. What is installed is recorded
# in share/openlapi/files, and in share/openlapi/doors/DOOR. Some doors replace libraries of other
# packages, and programs may have the names of others: what is there and is not recorded is named,
# and stays.
# PREFIX, DESTDIR, VERSION, RELEASE, RELEASE32, COMPAT and CATALOGS come from the environment, as
# the Makefile sets them. LIBDIR is the folder of the libraries below PREFIX; lib unless given.
# DOORS_FOLDER is doors unless given.
set -eu
# Others use what root installs, whatever root's own files are like.
umask 022
cd "$(dirname "$0")/../.."
to=${DESTDIR-}$PREFIX
RELEASE32=${RELEASE32-}
LIBDIR=${LIBDIR:-lib}
manifest=packaging/install/manifest record=share/openlapi/files
# The names of the compile wrapper, but those that the system has itself.
drivers=$(sed -n 's/^driver | \([^|]*\) |.*/\1/p' packaging/compat/xl-options | grep -v '^-' | tr ' ' '\n' | grep -vx mpcc_r)

# each FUNCTION: calls it with PACKAGE HOW SOURCE TARGET for every file, patterns expanded.
each() {
    local package how source target file
    while read -r package how source target; do
        case $package in '' | '#'*) continue ;; esac
        for name in RELEASE RELEASE32 COMPAT CATALOGS VERSION; do
            source=${source//"{$name}"/${!name}}
            target=${target//"{$name}"/${!name}}
        done
        case $target in lib/*) target=$LIBDIR/${target#lib/} ;; esac
        case $target in
        *'{DRIVERS}'*)
            for file in $drivers; do
                "$1" "$package" "$how" "$source" "${target/'{DRIVERS}'/$file}"
            done
            ;;
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
    done <"$manifest"
}

is_there() { # is_there HOW SOURCE TARGET: whether it is to be installed
    case $1 in
    '?link') [ -e "${3%/*}/$2" ] ;;
    '?'*) [ -e "$2" ] ;;
    esac
}

page() { # page TARGET: a document as it is installed
    local above=${1//[!\/]/} up=
    # From its folder up to share.
    while [ ${#above} -gt 1 ]; do
        up+=../
        above=${above#/}
    done
    sed -E -e "s#\]\((\.\./)*packaging/man/(man[0-9]/[^)]*)\)#](${up}man/\2)#g" \
        -e 's#\[([^]]*)\]\((\.\./)*(samples|lapi|python/|src|tests|tools|benches|fuzz|packaging|ci|LICENSE-)[^)]*\)#\1#g'
}

put() { # put PACKAGE HOW SOURCE TARGET
    local how=$2 source=$3 target=$to/$4
    is_there "$how" "$source" "$target" || return 0
    how=${how#'?'}
    [ -d "${target%/*}" ] || mkdir -p "${target%/*}"
    case $how in
    link)
        { [ -h "$target" ] && [ "$(readlink "$target")" = "$source" ]; } || ln -sfn "$source" "$target"
        ;;
    fill)
        sed -e "s|@PREFIX@|$(printf %s "$PREFIX" | sed 's/[&|\\]/\\&/g')|g" -e "s|@LIBDIR@|$LIBDIR|g" \
            -e "s|@RPATH@|$rpath|g" -e "s|@VERSION@|$VERSION|g" "$source" >"$target.new"
        chmod 644 "$target.new"
        mv -f "$target.new" "$target"
        ;;
    page)
        page "$4" <"$source" >"$target.new"
        chmod 644 "$target.new"
        mv -f "$target.new" "$target"
        ;;
    *)
        # -C keeps a file that is identical, so that targets that depend on its time are
        # not built again.
        install -C -m "$how" "$source" "$target"
        ;;
    esac
}

take() { # take PACKAGE HOW SOURCE TARGET
    rm -f "$to/$4"
    # A folder is removed with its last file; bin, lib, include, share and share/man, where other
    # software is, by `clear` if at all.
    local folder=${4%/*}
    while [ "$folder" != "${folder%/*}" ] && [ "$folder" != share/man ]; do
        ! compgen -G "$to/$folder/*" >/dev/null && rmdir "$to/$folder" 2>/dev/null || break
        folder=${folder%/*}
    done
}

list() { # list PACKAGE HOW SOURCE TARGET
    ! is_there "$2" "$3" "$to/$4" || echo "$1 $4"
}

# After an uninstall from a prefix of its own: the folders that are empty now. Those of
# the system stay.
clear() {
    case $PREFIX in / | /usr | /usr/local) return ;; esac
    local folder
    for folder in bin lib lib32 include share/man share .; do
        rmdir "$to/$folder" 2>/dev/null || :
    done
    rmdir "$to" 2>/dev/null || :
}

# --- a door --------------------------------------------------------------------------------------
choose() { # choose DOOR: whether it has something to install; its manifest and its record
    local folder=${DOORS_FOLDER:-doors}/$1
    manifest=$folder/packaging/manifest record=share/openlapi/doors/$1
    [ -d "$folder" ] || { echo "make: there is no door $1" >&2; exit 2; }
    [ -f "$manifest" ]
}

is_own() { # is_own FILE: whether it is recorded
    [ -f "$to/$record" ] && grep -qxF -- "$1" "$to/$record"
}

check() { # check PACKAGE HOW SOURCE TARGET: names what must not be replaced
    is_there "$2" "$3" "$to/$4" || return 0
    case $2 in
    *link) ;;
    *) [ -e "$3" ] || { echo "make: $3 was not built: make${door:+ doors}" >&2; exit 2; } ;;
    esac
    { [ ! -e "$to/$4" ] && [ ! -h "$to/$4" ]; } || is_own "$4" || echo "$to/$4"
}

check_program() { # check_program PACKAGE HOW SOURCE TARGET: that of a program
    # An installation without a record is from the time before there were records.
    [ -f "$to/$record" ] || [ ! -f "$to/share/openlapi/xl-options" ] || return 0
    case $4 in bin/*) check "$@" ;; esac
}

refuse_foreign() { # refuse_foreign WHAT FILES: ends when there are such files
    [ -n "$2" ] || return 0
    { echo "make: these files belong to something else, so nothing of $1 is installed:" && echo "$2"; } >&2
    exit 1
}

install_all() { # the files of the manifest, with their record
    local file
    mkdir -p "$to/${record%/*}"
    # What is installed from now on is known even if it is interrupted.
    { [ ! -f "$to/$record" ] || cat "$to/$record"; each list | cut -d' ' -f2-; } | LC_ALL=C sort -u >"$to/$record.new"
    mv "$to/$record.new" "$to/$record"
    each put
    each list | cut -d' ' -f2- | LC_ALL=C sort >"$to/$record.new"
    # Files of an earlier installation would be out of date.
    LC_ALL=C comm -13 "$to/$record.new" "$to/$record" | while read -r file; do take - - - "$file"; done
    mv "$to/$record.new" "$to/$record"
}

uninstall_all() { # what is recorded
    [ -f "$to/$record" ] || return 0
    local file
    while read -r file; do take - - - "$file"; done <"$to/$record"
    take - - - "$record"
}

install_door() { # install_door DOOR
    local foreign
    choose "$1" || { echo "   $1: a Rust crate, with nothing to install"; return 0; }
    foreign=$(each check)
    refuse_foreign "$1" "$foreign"
    install_all
    echo "   $1: $(wc -l <"$to/$record") files"
}

# What a user does next, as far as the environment does not have it yet.
advise() {
    [ -z "${DESTDIR-}" ] && [ "${ADVICE-}" != no ] || return 0
    case :$PATH: in
    *:"$to/bin":*) ;;
    *) echo "   for this shell: PATH=\"$to/bin:\$PATH\"" ;;
    esac
    echo "   next: man lapi; $to/share/doc/openlapi/docs/tutorial.md"
}

# The folder of libraries for programs that are linked with them, where the loader does not look.
rpath='-Wl,-rpath,"${libdir}" '
case $PREFIX in
/usr) rpath= ;;
/*) ;;
*)
    echo "make: PREFIX=$PREFIX is not an absolute path" >&2
    exit 2
    ;;
esac

what=${1-}
[ $# -eq 0 ] || shift
case $what in
install | uninstall | list) ;;
*)
    echo "usage: $0 install|uninstall|list [DOOR...]" >&2
    exit 2
    ;;
esac
if [ $# -gt 0 ]; then
    for door; do
        case $what in
        install) install_door "$door" ;;
        uninstall) ! choose "$door" || uninstall_all ;;
        list) ! choose "$door" || each list ;;
        esac
    done
    [ "$what" != uninstall ] || clear
    exit 0
fi
case $what in
install)
    foreign=$(each check_program)
    refuse_foreign OpenLAPI "$foreign"
    install_all
    advise
    ;;
uninstall)
    uninstall_all
    clear
    ;;
list) each list ;;
esac
