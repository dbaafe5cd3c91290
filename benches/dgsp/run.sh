#!/bin/sh
# Packs and unpacks common layouts by the library and by the MPIs that are installed, and compares
# each with the hand-written loop and with memcpy, and prints a table.
#
#   benches/dgsp/run.sh               about a minute
#   KIB="4 64 4096" benches/dgsp/run.sh    other sizes of message
#
# A system that is not installed is left out, and the table says so. The other variables are
# described in ../common.sh.
set -eu

name="dgsp bench" folder=dgsp
. "$(dirname "$0")/../common.sh"
ms=${MS:-60}
# The hand-written loops are the reference: optimised as far as possible without -march.
cflags="-O3 -std=gnu11 -Wall -Wextra"
systems=

# system NAME COMPILER FILE: builds the program of a system whose compiler is installed.
system() {
    if command -v "$2" >/dev/null 2>&1; then
        # shellcheck disable=SC2086
        "$2" $cflags -o "$build/$1" "$here/dgsp_bench.c" "$here/$3"
        systems="$systems $1"
    else
        say "no $2: $1 is not measured"
    fi
}
system lapi "$stage/bin/mpcc_r" lapi.c
system openmpi mpicc.openmpi mpi.c
system mpich mpicc.mpich mpi.c

# Open MPI refuses root otherwise; here it runs one process without a launcher.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for kib in ${KIB:-64}; do
    for system in $systems; do
        say "$system, messages of $kib KiB"
        timeout -k 5 300 "$build/$system" -t "$ms" -k "$kib" >>"$raw" </dev/null
    done
done

echo "Messages of ${KIB:-64} KiB, microseconds (and, in brackets, relative to the hand-written loop in the same process):"
echo
awk '
    {
        row = $2 " " $3 " " int($4 / 1024 + 0.5)
        if (!(row in seen)) { seen[row] = 1; rows[++n] = row }
        time[row, $1] = $5; against[row, $1] = $5 / $6; loop[row, $1] = $6; copy[row] = $7
        if (!($1 in known)) { known[$1] = 1; names[++systems] = $1 }
    }
    END {
        head = "| layout | direction |"; rule = "|---|---|"
        for (s = 1; s <= systems; s++) { head = head " " names[s] " |"; rule = rule "---:|" }
        print head " loop | memcpy |"; print rule "---:|---:|"
        for (i = 1; i <= n; i++) {
            split(rows[i], part, " ")
            line = "| " part[1] " | " part[2] " |"
            for (s = 1; s <= systems; s++) {
                key = rows[i] SUBSEP names[s]
                line = line (key in time ? sprintf(" %.2f (%.2f) |", time[key] / 1000, against[key]) : " - |")
            }
            printf "%s %.2f | %.2f |\n", line, loop[rows[i], names[1]] / 1000, copy[rows[i]] / 1000
        }
    }
' "$raw"
echo
echo "$(processor), $(cc --version | head -n 1), load $(load)"
