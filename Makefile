# make            build the library and the tools
# make deps       install what the build and the tests need (Debian), when it is missing
# make demo       build, compile two samples and run each with two tasks
# make demo-net   the same samples, with their tasks on two hosts, which are network namespaces of this machine
# make test       what must hold at every change: formatting, lints, tests; TEST_LONG=yes: with the tests that take long and are much like others, on what `make` builds
# make test-repeat  make test RUNS=10 times in a row, the second half of them beside LOOPS=4 endless loops
# make test-crowded  the tests of the library's behaviour with LAPI_SPIN=0, on 2 processors, with 16 tasks where any number will do
# make test-net   the tests of the library's behaviour over the network: on this machine alone, and on two hosts (namespaces)
# make check-all  test (TEST_LONG=yes), test-crowded, test-net, demo-doors, sanitize, interop, deny, crates, dist-test, reproducible, deb-test, site-test, test-cross, simulate, soak and soak-gm (10 minutes each), soak-rpmem, soak-fam, soak-sessions, fuzz (1 minute for each target), and a summary
# make loom       the models of the lock-free parts, in every order of their threads (part of make test)
# make sanitize   unit tests and C programs under ThreadSanitizer and AddressSanitizer
# make simulate   whole jobs over UDP on a virtual clock, SEEDS=1000 from SEED=1: losses, partitions, deaths and returns (some are part of make test)
# make soak       every operation at once for SECONDS=60, while some of TASKS=8 are killed and replaced; SEED=n; HOSTS=2: on network namespaces, RAILS=2: with two links, NETWORK=udp LOSS=1: over UDP with loss
# make soak-gm    processes of GM send and put to each other for SECONDS=60 while some are killed and replaced; SEED=n; HOSTS=2: on network namespaces, whose link fails at times
# make soak-rpmem  TRANSACTIONS=100000 in 4 threads with a replica, and KILLS=1000 of the program and a tenth of them of the daemon; SEED=n: the first one
# make soak-sessions  one server with 1,000 sessions over shared memory and over UDP, 10 over libfabric, SESSIONS=1000 by the best network, and what an idle one costs
# make soak-fam   PES=64 programs of OpenFAM do OPERATIONS=1000000 against a model, with one and with three daemons; SEED=n
# make cross      TARGET=aarch64-unknown-linux-gnu or powerpc64le-unknown-linux-gnu: build for machines of another kind, into the build folder's TARGET/stage
# make test-cross unit tests, the headers, programs in C and Fortran and Debian packages for aarch64 and powerpc64le, under qemu
# make interop    programs of 32 and of 64 bits in one job (make LIB32=yes builds, make install LIB32=yes installs for both)
# make bench      measure, beside today's peers, which are fetched; bench-net: between two hosts, which are network namespaces; bench-gfence: barriers with more tasks than processors; bench-paths: each way of long messages beside the chosen one; bench-interrupt: interrupt mode; bench-instructions: the cost of small calls; bench-doors: the doors beside LAPI
# make fuzz       feed everything that reads bytes from outside with anything, SECONDS=60 for each target
# make doors      the libraries of other interfaces on LAPI's core (doors/): DOORS="NAME..." some of them; install-doors, uninstall-doors: with
#                 PREFIX= and DESTDIR=, files of other packages are named and not replaced; demo-doors: the demonstration of each
# make crates     the crate lapi and those it needs, as packages for a registry, each built from what is in its package
# make wheel      the Python package openlapi, into the build folder's wheel
# make dist       the source tarball, into the build folder's dist; VENDOR=yes: with the crates of others, for builds without a network; dist-test: that
#                 one, built where there is neither git nor a network
# make sbom       bills of materials (CycloneDX), into the build folder's sbom
# make deny       the crates of others: licences, versions, sources, and known faults where their database can be reached
# make reproducible  everything that is published, built twice in two folders and compared
# make site       the documents and man pages as a site, searchable and without a server, in the build folder's site; site-test: looked at in
#                 a browser
# make install    PREFIX=/usr/local DESTDIR=
# make uninstall  PREFIX=/usr/local DESTDIR=
# make deb        Debian packages, into the build folder's deb (with TARGET= into TARGET/deb); deb-test: installed, used and removed in a
#                 fresh Debian

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
BUILD := $(abspath $(or $(CARGO_TARGET_DIR),target))
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

# TARGET=aarch64-unknown-linux-gnu, powerpc64le-unknown-linux-gnu: for machines of another kind. It
# needs Rust's target for them, and their gcc and g++ as Debian names them.
TARGET =
ifneq ($(TARGET),)
CROSS_COMPILE := $(subst -unknown,,$(TARGET))-
CC := $(CROSS_COMPILE)gcc
CXX := $(CROSS_COMPILE)g++
AR := $(CROSS_COMPILE)ar
export CARGO_TARGET_$(shell echo $(TARGET) | tr a-z- A-Z_)_LINKER := $(CC)
BUILD_FOR := $(BUILD)/$(TARGET)
# As Debian names the machine.
DEB_ARCH := $(patsubst powerpc64le,ppc64el,$(patsubst aarch64,arm64,$(firstword $(subst -, ,$(TARGET)))))
else
BUILD_FOR := $(BUILD)
endif
# release, or tested, which takes less time to build (ci/test.sh).
BUILD_PROFILE ?= release
$(if $(filter release tested,$(BUILD_PROFILE)),,$(error BUILD_PROFILE is release or tested))
STAGE ?= $(BUILD_FOR)/$(if $(filter tested,$(BUILD_PROFILE)),tested/)stage

RELEASE := $(BUILD_FOR)/$(BUILD_PROFILE)
COMPAT := $(BUILD_FOR)/compat
# LIB32=yes: the library for programs of 32 bits, too. It needs Rust's target for them,
# and gcc-multilib.
TARGET32 := i686-unknown-linux-gnu
RELEASE32 := $(if $(filter yes,$(LIB32)),$(BUILD)/$(TARGET32)/release)
LIBRARY32 := $(BUILD)/$(TARGET32)/release/liblapi_r.so
# The empty ones are named on old link lines and have nothing left to hold.
EMPTY := $(COMPAT)/libpoe.a $(COMPAT)/libmpi_ibm.a
ARCHIVES := $(COMPAT)/libaixcompat.a $(EMPTY)
CATALOGS := $(BUILD)/catalogs
# English is built in.
CATALOGUES := $(patsubst packaging/catalogs/%.msg,$(CATALOGS)/%/liblapi.cat,$(filter-out packaging/catalogs/en.msg,$(wildcard packaging/catalogs/*.msg)))
# What cargo builds, of all that is installed.
BUILT := $(addprefix $(RELEASE)/,liblapi_r.so liblapiprof.so poe lapi_info lapi_perf lapi_prof lapi_top)
# packaging/install/manifest lists what is installed, and where.
INSTALLER = LIBDIR=lib PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" VERSION="$(VERSION)" RELEASE="$(RELEASE)" COMPAT="$(COMPAT)" \
	RELEASE32="$(RELEASE32)" CATALOGS="$(CATALOGS)" packaging/install/install.sh

SECONDS ?= 60
TASKS ?= 8
HOSTS ?= 1
RAILS ?= 1
NETWORK ?= fabric
LOSS ?= 0
TRANSACTIONS ?= 100000
KILLS ?= 1000
SESSIONS ?= 1000
PES ?= 64
OPERATIONS ?= 1000000
VENDOR ?=
SEED ?=
SEEDS ?= 1000
RUNS ?= 10
LOOPS ?= 4
# Soaks of the doors are built a little optimised, in a folder of their own.
SOAK := CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_TARGET_DIR="$(BUILD)/soak"
# Each is a folder, whose package is named openlapi-NAME; what it installs is in its packaging/manifest.
DOORS ?= $(patsubst doors/%/Cargo.toml,%,$(wildcard doors/*/Cargo.toml))

.PHONY: all library library32 compat catalogues interop deps demo demo-net test test-repeat test-crowded test-net check-all cross test-cross loom sanitize simulate soak soak-gm soak-rpmem soak-fam soak-sessions bench bench-net bench-gfence bench-paths bench-interrupt bench-instructions bench-doors fuzz doors install-doors uninstall-doors demo-doors crates wheel dist dist-test sbom deny reproducible site site-test install uninstall stage \
	deb deb-test clean
all: library compat catalogues $(if $(RELEASE32),library32)

library:
	@echo "== build: the library, the profiler and the tools"
	@packaging/install/paths.sh "$(BUILD)"
	$(CARGO) build --config "$(BUILD)/paths.toml" --profile $(BUILD_PROFILE) $(if $(TARGET),--target $(TARGET)) -p lapi_r -p lapiprof -p openlapi-prof -p openlapi-tools

# One command makes them all.
$(BUILT) &:
	@$(MAKE) library

$(LIBRARY32):
	@$(MAKE) library32

library32:
	@echo "== build: the library for programs of 32 bits"
	@packaging/install/paths.sh "$(BUILD)"
	$(CARGO) build --config "$(BUILD)/paths.toml" --release --target $(TARGET32) -p lapi_r
	$(CC) -m32 -O2 -fPIC -Wall -Wextra -Ipackaging/compat -c -o $(RELEASE32)/aixcompat.o packaging/compat/aixcompat.c
	rm -f $(RELEASE32)/libaixcompat.a
	$(AR) crsD $(RELEASE32)/libaixcompat.a $(RELEASE32)/aixcompat.o

compat: $(ARCHIVES)

$(COMPAT)/libaixcompat.a: packaging/compat/aixcompat.c packaging/compat/sys/atomic_op.h
	@mkdir -p $(COMPAT)
	$(CC) -O2 -fPIC -Wall -Wextra -Ipackaging/compat -c -o $(COMPAT)/aixcompat.o $<
	rm -f $@
	$(AR) crsD $@ $(COMPAT)/aixcompat.o

$(EMPTY): Makefile
	@mkdir -p $(COMPAT)
	rm -f $@
	$(AR) crsD $@

# The messages in other languages. A machine without gencat has them in English, which is built in.
catalogues: $(CATALOGUES)

$(CATALOGS)/%/liblapi.cat: packaging/catalogs/%.msg
	@mkdir -p $(@D)
	@rm -f $@
	@if command -v gencat >/dev/null; then gencat $@ $<; else echo "== no gencat here: no catalogue from $<"; fi

deps:
	ci/deps.sh build test python net slurm doors

demo:
	ci/deps.sh build
	$(MAKE) stage
	ci/demo.sh "$(STAGE)"

demo-net:
	ci/deps.sh build net
	$(MAKE) stage
	ci/demo-net.sh "$(STAGE)"

test:
	ci/deps.sh build test python net slurm doors
	ci/fmt.sh
	MAKE="$(MAKE)" ci/test.sh
	@echo "== make test: all of it passed"

test-repeat:
	MAKE="$(MAKE)" RUNS=$(RUNS) LOOPS=$(LOOPS) ci/repeat.sh

test-crowded:
	ci/deps.sh build test
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" ci/test-crowded.sh

test-net:
	ci/deps.sh build test net
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" ci/test-net.sh

# The other targets in turn: SECONDS is for soak and fuzz alone, and theirs here.
check-all:
	ci/check-all.sh

loom:
	ci/deps.sh build
	ci/loom.sh

sanitize:
	ci/deps.sh build c++ sanitize
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" ci/sanitize.sh

simulate:
	ci/deps.sh build
	ci/simulate.sh $(SEEDS) $(or $(SEED),1)

soak:
	ci/deps.sh build
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" ci/soak.sh SECONDS=$(SECONDS) TASKS=$(TASKS) HOSTS=$(HOSTS) RAILS=$(RAILS) NETWORK=$(NETWORK) LOSS=$(LOSS) $(if $(SEED),SEED=$(SEED))

soak-gm:
	ci/deps.sh build net
	@echo "== soak-gm"
	$(SOAK) GM_SOAK=$(SECONDS) GM_HOSTS=$(HOSTS) $(if $(SEED),GM_SEED=$(SEED)) $(CARGO) test --quiet -p openlapi-gm --test soak -- --nocapture </dev/null

soak-rpmem:
	ci/deps.sh build net doors
	@echo "== soak-rpmem"
	$(SOAK) RPMEM_TRANSACTIONS=$$(($(TRANSACTIONS) / 4)) RPMEM_KILLS=$(KILLS) $(if $(SEED),RPMEM_SEED=$(SEED)) $(CARGO) test --quiet -p openlapi-rpmem --test pmemobj -- --nocapture </dev/null

soak-sessions:
	ci/deps.sh build test
	@echo "== soak-sessions"
	$(SOAK) MANY_SESSIONS=$(SESSIONS) $(CARGO) test --quiet -p openlapi-session --test many -- --nocapture </dev/null

soak-fam:
	ci/deps.sh build c++
	$(MAKE) stage
	@echo "== soak-fam"
	$(SOAK) LAPI_STAGE="$(STAGE)" FAM_TEST_PES=$(PES) FAM_TEST_OPERATIONS=$(OPERATIONS) $(if $(SEED),FAM_SEED=$(SEED)) $(CARGO) test --quiet -p openlapi-fam --test programs several_pes -- --nocapture </dev/null

cross:
	ci/deps.sh build
	@test -n "$(TARGET)" || { echo "make cross TARGET=aarch64-unknown-linux-gnu, or powerpc64le-unknown-linux-gnu" >&2; exit 2; }
	ci/deps.sh $(firstword $(subst -, ,$(TARGET)))
	$(MAKE) stage TARGET=$(TARGET)

test-cross:
	ci/deps.sh build test aarch64 powerpc64le cross-test deb
	ci/test-cross.sh

# The headers of the kernel, to which gcc-multilib has a link, but not gcc-12-multilib: Debian has that one
# beside cross compilers.
interop: export C_INCLUDE_PATH = /usr/include/$(shell gcc -print-multiarch)
interop: export CPLUS_INCLUDE_PATH = $(C_INCLUDE_PATH)
interop:
	ci/deps.sh build test interop
	$(MAKE) stage LIB32=yes STAGE="$(BUILD)/stage32"
	LAPI_STAGE="$(BUILD)/stage32" ci/interop.sh

bench:
	ci/deps.sh build bench
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" BENCH_BUILD="$(BUILD)/bench" benches/run.sh

bench-net:
	ci/deps.sh build net bench-net
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" BENCH_BUILD="$(BUILD)/bench/net" benches/net/run.sh

bench-gfence:
	ci/deps.sh build bench
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" BENCH_BUILD="$(BUILD)/bench/gfence" benches/gfence/run.sh

bench-paths:
	ci/deps.sh build
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" BENCH_BUILD="$(BUILD)/bench/paths" benches/paths.sh

bench-interrupt:
	ci/deps.sh build
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" BENCH_BUILD="$(BUILD)/bench/interrupt" benches/interrupt/run.sh

bench-instructions:
	ci/deps.sh build instructions
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" BENCH_BUILD="$(BUILD)/bench/instructions" benches/instructions/run.sh

bench-doors: doors
	ci/deps.sh build c++
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" RELEASE="$(RELEASE)" BENCH_BUILD="$(BUILD)/bench/doors" benches/doors/run.sh
	LAPI_STAGE="$(STAGE)" RELEASE="$(RELEASE)" BENCH_BUILD="$(BUILD)/bench/doors" benches/doors/fam.sh

fuzz:
	ci/deps.sh build
	fuzz/run.sh $(SECONDS)

doors:
	ci/deps.sh build c++
	@packaging/install/paths.sh "$(BUILD)"
	$(CARGO) build --config "$(BUILD)/paths.toml" --profile $(BUILD_PROFILE) $(if $(TARGET),--target $(TARGET)) $(DOORS:%=-p openlapi-%)
	@for door in $(DOORS); do ! [ -x doors/$$door/link.sh ] || CC="$(CC)" CXX="$(CXX)" RELEASE="$(RELEASE)" doors/$$door/link.sh || exit 1; done

# They install what `make doors` has built.
install-doors:
	@echo "== install-doors: $(DESTDIR)$(PREFIX)"
	@$(INSTALLER) install $(DOORS)

uninstall-doors:
	@echo "== uninstall-doors: $(DESTDIR)$(PREFIX)"
	@$(INSTALLER) uninstall $(DOORS)

demo-doors:
	ci/deps.sh build c++ net doors
	$(MAKE) doors
	@$(MAKE) install-doors PREFIX="$(BUILD_FOR)/doors" DESTDIR=
	@for door in $(DOORS); do ! [ -x doors/$$door/demo.sh ] || { echo "== demo: $$door" && \
		RELEASE="$(RELEASE)" doors/$$door/demo.sh "$(BUILD_FOR)/doors" || exit 1; }; done

crates:
	ci/deps.sh build
	ci/crates.sh

wheel:
	ci/deps.sh build python
	SOURCE_DATE_EPOCH="$$(packaging/install/date.sh)" ci/wheel.sh

dist:
	@VENDOR="$(VENDOR)" ci/dist.sh "$(BUILD)/dist"

dist-test:
	ci/deps.sh build
	$(MAKE) dist VENDOR=yes
	ci/dist-test.sh "$(BUILD)/dist/openlapi-$(VERSION)-vendored.tar.gz"

sbom:
	ci/deps.sh build
	ci/sbom.sh

deny:
	ci/deps.sh build
	ci/deny.sh

reproducible:
	ci/deps.sh build c++ python deb
	ci/reproducible.sh

site: stage
	ci/deps.sh site
	ci/site.sh "$(STAGE)"

site-test: site
	ci/deps.sh browser
	ci/site-test.sh "$(BUILD)/site"

# The same rules install into the build folder; demo, bench and most checks run from there,
# and make test from one of its own (ci/test.sh).
stage: all
	@$(MAKE) install PREFIX="$(STAGE)" DESTDIR= ADVICE=no

# Installing builds only what was never built: root, who often installs, often has no Rust.
install: $(BUILT) $(ARCHIVES) $(CATALOGUES) $(if $(RELEASE32),$(LIBRARY32))
	@echo "== install: $(DESTDIR)$(PREFIX)"
	@$(INSTALLER) install

uninstall:
	@echo "== uninstall: $(DESTDIR)$(PREFIX)"
	@$(INSTALLER) uninstall

# The packages, from what was built; they are the same for the same sources.
deb:
	ci/deps.sh build c++ deb
	$(MAKE) all doors
	@echo "== deb: $(BUILD_FOR)/deb"
	@VERSION="$(VERSION)" RELEASE="$(RELEASE)" COMPAT="$(COMPAT)" CATALOGS="$(CATALOGS)" DEB_ARCH="$(DEB_ARCH)" DOORS="$(DOORS)" \
		CROSS_COMPILE="$(CROSS_COMPILE)" packaging/install/deb.sh "$(BUILD_FOR)/deb"

# Needs root, and a Debian mirror for the fresh system.
deb-test:
	ci/deps.sh deb-test
	$(MAKE) deb
	ci/deb-test.sh "$(BUILD)/deb"

clean:
	$(CARGO) clean
