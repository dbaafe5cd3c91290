# make            build the library and the tools
# make deps       install what the build and the tests need (Debian), when it is missing
# make demo       build, compile two samples and run each with two tasks
# make test       everything that must hold: formatting, lints, all tests
# make loom       the models of the lock-free parts, in every order of their threads (part of make test)
# make sanitize   unit tests and C programs under ThreadSanitizer and AddressSanitizer
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
HEADERS := include/lapi.h include/css_shared.h

# -C leaves a file alone that is the same already, so that what depends on its time is not made again.
INSTALL := install -C
TO := $(DESTDIR)$(PREFIX)

SECONDS ?= 60

.PHONY: all library compat deps demo test loom sanitize bench bench-interrupt fuzz install uninstall stage clean
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
	@mkdir -p "$(TO)/bin" "$(TO)/lib/pkgconfig" "$(TO)/include/sys"
	$(INSTALL) -m 755 $(RELEASE)/liblapi_r.so "$(TO)/lib/liblapi_r.so.1"
	@ln -sfn liblapi_r.so.1 "$(TO)/lib/liblapi_r.so"
	@ln -sfn liblapi_r.so.1 "$(TO)/lib/liblapi.so"
	$(INSTALL) -m 755 $(RELEASE)/liblapiprof.so "$(TO)/lib/liblapiprof.so.1"
	@ln -sfn liblapiprof.so.1 "$(TO)/lib/liblapiprof.so"
	$(INSTALL) -m 644 $(ARCHIVES) "$(TO)/lib"
	$(INSTALL) -m 644 $(HEADERS) "$(TO)/include"
	$(INSTALL) -m 644 tools/compat/sys/atomic_op.h "$(TO)/include/sys"
	$(INSTALL) -m 755 $(RELEASE)/poe $(RELEASE)/lapi_prof tools/wrappers/mpcc_r "$(TO)/bin"
	@ln -sfn mpcc_r "$(TO)/bin/mpCC_r"
	@ln -sfn mpcc_r "$(TO)/bin/cc_r"
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' tools/wrappers/lapi_r.pc.in \
		>"$(TO)/lib/pkgconfig/lapi_r.pc"

uninstall:
	rm -f $(addprefix "$(TO)"/lib/,liblapi_r.so.1 liblapi_r.so liblapi.so liblapiprof.so.1 liblapiprof.so $(notdir $(ARCHIVES)) pkgconfig/lapi_r.pc)
	rm -f $(addprefix "$(TO)"/include/,$(notdir $(HEADERS)) sys/atomic_op.h)
	rm -f $(addprefix "$(TO)"/bin/,poe lapi_prof mpcc_r mpCC_r cc_r)

clean:
	$(CARGO) clean
