# make            build the library and the tools
# make deps       install what the build and the tests need (Debian), when it is missing
# make demo       build, compile two samples and run each with two tasks
# make test       everything that must hold: formatting, lints, all tests
# make loom       the models of the lock-free parts, in every order of their threads (part of make test)
# make sanitize   unit tests and C programs under ThreadSanitizer and AddressSanitizer
# make soak       every operation at once for SECONDS=60, while some of TASKS=8 are killed and started anew; SEED=n
# make bench      measure, beside the peers; bench-interrupt: interrupt mode
# make fuzz       feed the gather/scatter machine with anything, SECONDS=60 for each target
# make install    PREFIX=/usr/local DESTDIR=
# make uninstall  PREFIX=/usr/local DESTDIR=

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
BUILD := $(abspath $(or $(CARGO_TARGET_DIR),target))
STAGE ?= $(BUILD)/stage
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

RELEASE := $(BUILD)/release
COMPAT := $(BUILD)/compat
# The empty ones are named on old link lines and have nothing left to hold.
EMPTY := $(COMPAT)/libpoe.a $(COMPAT)/libmpi_ibm.a
ARCHIVES := $(COMPAT)/libaixcompat.a $(EMPTY)
HEADERS := include/lapi.h include/css_shared.h fortran/lapif.h fortran/lapi.f90
# mpcc_r by its other names: it does what each is for.
WRAPPERS := mpCC_r cc_r mpxlf_r mpxlf90_r xlf_r mpfort
# Pages by their place under share/man, and the other names that some of them have.
PAGES := $(patsubst man/%,%,$(wildcard man/man[137]/*))
PAGE_LINKS := $(WRAPPERS:%=man1/%.1) $(patsubst man3/%,man3/P%,$(filter man3/%,$(PAGES)))

# -C leaves a file alone that is the same already, so that what depends on its time is not made again.
INSTALL := install -C
TO := $(DESTDIR)$(PREFIX)

SECONDS ?= 60
TASKS ?= 8
SEED ?=

.PHONY: all library compat deps demo test loom sanitize soak bench bench-interrupt fuzz install uninstall stage clean
all: library compat

library:
	@echo "== build: the library, the profiler and the tools"
	$(CARGO) build --release -p lapi_r -p openlapi-prof -p openlapi-tools

$(RELEASE)/liblapi_r.so $(RELEASE)/liblapiprof.so $(RELEASE)/lapi_prof $(RELEASE)/poe:
	@$(MAKE) library

compat: $(ARCHIVES)

$(COMPAT)/libaixcompat.a: tools/compat/aixcompat.c tools/compat/sys/atomic_op.h
	@mkdir -p $(COMPAT)
	$(CC) -O2 -fPIC -Wall -Wextra -Itools/compat -c -o $(COMPAT)/aixcompat.o $<
	rm -f $@
	$(AR) crs $@ $(COMPAT)/aixcompat.o

$(EMPTY): Makefile
	@mkdir -p $(COMPAT)
	rm -f $@
	$(AR) crs $@

deps:
	ci/deps.sh build test

demo:
	ci/deps.sh build
	$(MAKE) stage
	ci/demo.sh "$(STAGE)"

test:
	ci/deps.sh build test
	ci/fmt.sh
	ci/clippy.sh
	ci/loom.sh
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" ci/test.sh
	@echo "== make test: all of it passed"

loom:
	ci/deps.sh build
	ci/loom.sh

sanitize:
	ci/deps.sh build sanitize
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" ci/sanitize.sh

soak:
	ci/deps.sh build
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" ci/soak.sh $(SECONDS) $(TASKS) $(SEED)

bench:
	ci/deps.sh build bench
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" BENCH_BUILD="$(BUILD)/bench" benches/run.sh

bench-interrupt:
	ci/deps.sh build
	$(MAKE) stage
	LAPI_STAGE="$(STAGE)" BENCH_BUILD="$(BUILD)/bench/interrupt" benches/interrupt/run.sh

fuzz:
	ci/deps.sh build
	fuzz/run.sh $(SECONDS)

# The same rules install into the build folder; demo, test and bench run from there.
stage: all
	@$(MAKE) install PREFIX="$(STAGE)" DESTDIR=

# Installing builds only what was never built: root, who often installs, often has no Rust.
install: $(RELEASE)/liblapi_r.so $(RELEASE)/liblapiprof.so $(RELEASE)/lapi_prof $(RELEASE)/poe $(ARCHIVES)
	@echo "== install: $(TO)"
	@mkdir -p "$(TO)/bin" "$(TO)/lib/pkgconfig" "$(TO)/include/sys" "$(TO)/include/32"
	$(INSTALL) -m 755 $(RELEASE)/liblapi_r.so "$(TO)/lib/liblapi_r.so.1"
	@ln -sfn liblapi_r.so.1 "$(TO)/lib/liblapi_r.so"
	@ln -sfn liblapi_r.so.1 "$(TO)/lib/liblapi.so"
	$(INSTALL) -m 755 $(RELEASE)/liblapiprof.so "$(TO)/lib/liblapiprof.so.1"
	@ln -sfn liblapiprof.so.1 "$(TO)/lib/liblapiprof.so"
	$(INSTALL) -m 644 $(ARCHIVES) "$(TO)/lib"
	$(INSTALL) -m 644 $(HEADERS) "$(TO)/include"
	$(INSTALL) -m 644 fortran/lapif32.h "$(TO)/include/32/lapif.h"
	$(INSTALL) -m 644 tools/compat/sys/atomic_op.h "$(TO)/include/sys"
	$(INSTALL) -m 755 $(RELEASE)/poe $(RELEASE)/lapi_prof tools/wrappers/mpcc_r "$(TO)/bin"
	@for name in $(WRAPPERS); do ln -sfn mpcc_r "$(TO)/bin/$$name"; done
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' tools/wrappers/lapi_r.pc.in \
		>"$(TO)/lib/pkgconfig/lapi_r.pc"
	@mkdir -p $(addprefix "$(TO)"/share/man/,man1 man3 man7)
	$(foreach n,1 3 7,$(INSTALL) -m 644 man/man$n/*.$n "$(TO)/share/man/man$n" &&) true
	@for name in $(WRAPPERS); do ln -sfn mpcc_r.1 "$(TO)/share/man/man1/$$name.1"; done
	@for page in $(notdir $(filter man3/%,$(PAGES))); do ln -sfn "$$page" "$(TO)/share/man/man3/P$$page"; done

uninstall:
	rm -f $(addprefix "$(TO)"/lib/,liblapi_r.so.1 liblapi_r.so liblapi.so liblapiprof.so.1 liblapiprof.so $(notdir $(ARCHIVES)) pkgconfig/lapi_r.pc)
	rm -f $(addprefix "$(TO)"/include/,$(notdir $(HEADERS)) sys/atomic_op.h 32/lapif.h)
	rm -f $(addprefix "$(TO)"/bin/,poe lapi_prof mpcc_r $(WRAPPERS))
	rm -f $(addprefix "$(TO)"/share/man/,$(PAGES) $(PAGE_LINKS))

clean:
	$(CARGO) clean
