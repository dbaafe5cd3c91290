#!/usr/bin/env bash
# Installs the Debian packages that are missing for the purposes named: build, c++, test, python,
# site, browser, net, slurm, doors, bench, bench-net, sanitize, instructions, interop, aarch64,
# powerpc64le, cross-test, deb, deb-test.
set -eu

missing=()
need() { # need PACKAGE COMMAND...: the package is missing when the command fails
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}
libclang() { # the library that bindgen opens
    compgen -G "/usr/lib/llvm-*/lib/libclang.so*"
}
# Debian's name of this machine, as its folders of libraries have it. A machine without either
# command has none of what is looked for there.
multiarch=$(gcc -print-multiarch 2>/dev/null || dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || true)
compiles() { # compiles COMPILER HEADER [LANGUAGE]
    # A file, not `-`: without one Open MPI's wrapper looks in no folder of its own.
    # shellcheck disable=SC2086 # a compiler and its options
    echo "#include <$2>" | $1 -E -x "${3:-c}" /dev/stdin
}

for purpose in "$@"; do
    case $purpose in
    build)
        if ! command -v cargo >/dev/null; then
            echo "ci/deps.sh: there is no Rust here: install it from https://rustup.rs (or Debian's rustup package)" >&2
            exit 1
        fi
        need gcc command -v gcc
        need libc6-dev compiles gcc stdio.h
        ;;
    c++)
        # The classes of doors (doors/fam/shim) are compiled, not only linked.
        need g++ command -v g++
        ;;
    test)
        # Tests of networks, and of the bindings to libfabric: the library, its headers, and what
        # bindgen reads them with.
        need libfabric-dev compiles gcc rdma/fabric.h
        need libclang-dev libclang
        # The wrappers, the headers and the samples are compiled as C++ too.
        need g++ command -v g++
        # The formatters of man pages check them for errors.
        need mandoc command -v mandoc
        need groff-base command -v groff
        # poe -gdb.
        need gdb command -v gdb
        # Programs under checkers.
        need valgrind command -v valgrind
        need strace command -v strace
        need linux-perf command -v perf
        need rr command -v rr
        # lapif.h and the calls from Fortran.
        need gfortran command -v gfortran
        # The module file.
        need tcl command -v tclsh
        need environment-modules test -x "/usr/lib/$multiarch/modulecmd.tcl"
        # Programs also find the library by these.
        need pkg-config command -v pkg-config
        need cmake command -v cmake
        ;;
    python)
        # The Python package is built and tested in environments of its own, to which pip adds
        # what it needs.
        need python3 command -v python3
        need python3-venv python3 -c 'import venv, ensurepip'
        ;;
    site)
        # Man pages become pages of the site. mdbook is built by cargo (ci/site.sh).
        need mandoc command -v mandoc
        ;;
    browser)
        need chromium command -v chromium
        ;;
    net)
        # Hosts that are network namespaces, and a launcher that starts tasks on them. About 1 s.
        need iproute2 test -x "$(PATH=$PATH:/usr/sbin:/sbin command -v ip)"
        need mpich command -v mpiexec.hydra
        # Datagrams that are lost.
        need nftables test -x "$(PATH=$PATH:/usr/sbin:/sbin command -v nft)"
        ;;
    slurm)
        # Without these tests/tests/launchers and hosts skip what they have of them, and say so.
        # Open MPI, and a cluster that the tests start and remove.
        need openmpi-bin command -v mpirun.openmpi
        # Programs that use LAPI and MPI.
        need libmpich-dev compiles mpicc.mpich mpi.h
        need libopenmpi-dev compiles mpicc.openmpi mpi.h
        # Slurm opens the library by the name that only the package for developers has.
        need libpmix-dev test -e "/usr/lib/$multiarch/libpmix.so"
        need slurm-wlm-basic-plugins test -e "/usr/lib/$multiarch/slurm-wlm/mpi_pmi2.so"
        need slurmctld test -x /usr/sbin/slurmctld
        need slurmd test -x /usr/sbin/slurmd
        need slurm-client command -v srun
        need munge test -x /usr/sbin/munged
        ;;
    doors)
        # The demonstrations find an installed door by its file for pkg-config, and some of them are
        # C++.
        need g++ command -v g++
        need pkg-config command -v pkg-config
        # The programs that open librpmem by name. Without them doors/rpmem/tests/pmemobj.rs skips
        # what it has of them, and says so.
        need libpmemobj-dev compiles gcc libpmemobj.h
        need pmdk-tools command -v pmempool
        ;;
    sanitize)
        # gcc itself has the list of a sanitizer's libraries and its start-up object. The
        # runtime is Rust's.
        need gcc test -f "$(gcc -print-file-name=libsanitizer.spec)"
        host=$(rustc -vV | sed -n 's/^host: //p')
        if [ ! -f "$(rustc --print sysroot)/lib/rustlib/$host/lib/librustc-stable_rt.tsan.a" ]; then
            echo "ci/deps.sh: this Rust has no sanitizers' runtime: install the toolchain by rustup" >&2
            exit 1
        fi
        ;;
    bench)
        # pip fetches the peers with which the library is compared (benches/peers.sh).
        need python3 command -v python3
        need python3-venv python3 -c 'import venv, ensurepip'
        ;;
    bench-net)
        # libfabric's headers and its fi_pingpong, and the two MPIs with which the
        # library is compared.
        need libfabric-dev compiles gcc rdma/fabric.h
        need libfabric-bin command -v fi_pingpong
        need libmpich-dev compiles mpicc.mpich mpi.h
        need libopenmpi-dev compiles mpicc.openmpi mpi.h
        need openmpi-bin command -v mpirun.openmpi
        ;;
    instructions)
        need valgrind command -v valgrind
        ;;
    interop)
        # Of one version, which Debian has beside cross compilers. The Makefile has what it lacks.
        need "gcc-$(gcc -dumpversion)-multilib" compiles "gcc -m32" errno.h
        need "g++-$(gcc -dumpversion)-multilib" compiles "g++ -m32" type_traits c++
        if [ ! -d "$(rustc --print sysroot)/lib/rustlib/i686-unknown-linux-gnu" ]; then
            echo "== Rust for programs of 32 bits is missing: adding it"
            rustup target add i686-unknown-linux-gnu
        fi
        ;;
    aarch64 | powerpc64le)
        need "gcc-$purpose-linux-gnu" command -v "$purpose-linux-gnu-gcc"
        # The door fam has a shim in C++ (make deb).
        need "g++-$purpose-linux-gnu" command -v "$purpose-linux-gnu-g++"
        if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$purpose-unknown-linux-gnu" ]; then
            echo "== Rust for $purpose is missing: adding it"
            rustup target add "$purpose-unknown-linux-gnu"
        fi
        ;;
    cross-test)
        for machine in aarch64 powerpc64le; do
            need "gfortran-$machine-linux-gnu" command -v "$machine-linux-gnu-gfortran"
        done
        need qemu-user command -v qemu-aarch64
        ;;
    deb)
        need dpkg-dev command -v dpkg-shlibdeps
        ;;
    deb-test)
        need debootstrap test -x /usr/sbin/debootstrap
        need lintian command -v lintian
        ;;
    *)
        echo "ci/deps.sh: no such purpose: $purpose" >&2
        exit 2
        ;;
    esac
done

if [ ${#missing[@]} -eq 0 ]; then
    echo "== deps: nothing is missing for: $*"
    exit 0
fi
echo "== deps: installing ${missing[*]}"
if ! command -v apt-get >/dev/null; then
    echo "ci/deps.sh: please install what Debian calls: ${missing[*]}" >&2
    exit 1
fi
as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi; }
export DEBIAN_FRONTEND=noninteractive
as_root apt-get update -qq
as_root apt-get install -y -qq --no-install-recommends "${missing[@]}"
