#!/bin/sh
# Starts TASKS (2) processes of a program by one of the MPIs: mpi.sh impi|mpich|ompi FOLDER
# PROGRAM ARGUMENT...
# FOLDER is where the MPI was unpacked (peers.sh); with "installed" it is the one of the system.
# YIELD=yes: a process that waits gives its processor away between two looks (MPICH, Open MPI).
set -eu

mpi=$1 folder=$2 tasks=${TASKS:-2}
shift 2
if [ "$folder" != installed ]; then
    export LD_LIBRARY_PATH="$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" PATH="$folder/bin:$PATH"
fi
# The programs pin themselves.
case $mpi in
impi)
    export I_MPI_ROOT="$folder" I_MPI_FABRICS=shm I_MPI_PIN=0
    exec mpiexec.hydra -n "$tasks" "$@"
    ;;
mpich)
    [ "${YIELD:-no}" = no ] || export MPIR_CVAR_POLLS_BEFORE_YIELD=1
    exec mpiexec.hydra -bind-to none -n "$tasks" "$@"
    ;;
ompi)
    [ "$folder" = installed ] || export OPAL_PREFIX="$folder"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    mpirun=$(command -v mpirun.openmpi || echo mpirun)
    [ "$folder" = installed ] || mpirun=$folder/bin/mpirun
    [ "${YIELD:-no}" = no ] || export OMPI_MCA_mpi_yield_when_idle=1
    exec "$mpirun" --bind-to none --map-by slot:OVERSUBSCRIBE -n "$tasks" "$@"
    ;;
*)
    echo "mpi.sh: no MPI is called $mpi" >&2
    exit 2
    ;;
esac
