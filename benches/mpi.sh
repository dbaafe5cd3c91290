#!/bin/sh
# Starts two processes of a program by one of the MPIs: mpi.sh impi|mpich|ompi FOLDER
# PROGRAM ARGUMENT...
# FOLDER is where the MPI was unpacked (peers.sh); with "installed" it is the one of the system.
set -eu

mpi=$1 folder=$2
shift 2
if [ "$folder" != installed ]; then
    export LD_LIBRARY_PATH="$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" PATH="$folder/bin:$PATH"
fi
# The programs pin themselves.
case $mpi in
impi)
    export I_MPI_ROOT="$folder" I_MPI_FABRICS=shm I_MPI_PIN=0
    exec mpiexec.hydra -n 2 "$@"
    ;;
mpich)
    exec mpiexec.hydra -bind-to none -n 2 "$@"
    ;;
ompi)
    [ "$folder" = installed ] || export OPAL_PREFIX="$folder"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    mpirun=$(command -v mpirun.openmpi || echo mpirun)
    [ "$folder" = installed ] || mpirun=$folder/bin/mpirun
    exec "$mpirun" --bind-to none -n 2 "$@"
    ;;
*)
    echo "mpi.sh: no MPI is called $mpi" >&2
    exit 2
    ;;
esac
