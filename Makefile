# SPDX-License-Identifier: Apache-2.0
#
# Everything that is made goes below build/. Needs no network and nothing of the running kernel.
#   make                      the program, build/throttlescope
#   make V=1                  shows the commands
#   make ARCH=arm64           cross build into build/arm64/ (CROSS_COMPILE, SYSROOT)
#   make help                 all targets

VERSION := 0.1.0

MAKEFLAGS += --no-builtin-rules
SHELL := /bin/sh
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all
Q := $(if $(filter-out 0,$(V)),,@)
SUBMAKE = $(MAKE) --no-print-directory $(if $(findstring j,$(firstword -$(MAKEFLAGS))),,-j$(shell nproc))
say = $(if $(filter-out 0,$(V)),:,printf '  %-8s%s\n' $(1) '$(2)')

# --- for which machine ------------------------------------------------------------------------------------------------
NATIVE_ARCH := $(patsubst x86_64,amd64,$(patsubst aarch64,arm64,$(shell uname -m)))
ARCH ?= $(NATIVE_ARCH)
IS_CROSS := $(filter-out $(NATIVE_ARCH),$(ARCH))
TRIPLET_amd64 := x86_64-linux-gnu
TRIPLET_arm64 := aarch64-linux-gnu
CROSS_COMPILE ?= $(if $(IS_CROSS),$(TRIPLET_$(ARCH))-)
SYSROOT ?=
B ?= build$(if $(IS_CROSS),/$(ARCH))

# --- tools ------------------------------------------------------------------------------------------------------------
ifeq ($(origin CC),default)
CC := $(CROSS_COMPILE)gcc
endif
ifeq ($(origin AR),default)
AR := $(CROSS_COMPILE)ar
endif
CLANG ?= clang
CLANG_FORMAT ?= clang-format
CLANG_TIDY ?= clang-tidy
# Ubuntu's bpftool is a wrapper that only serves the running kernel's version; any real one does for a build.
BPFTOOL ?= $(or $(shell for tool in bpftool /usr/sbin/bpftool /usr/lib/linux-tools/*/bpftool \
	/usr/lib/linux-tools-*/bpftool; do "$$tool" version >/dev/null 2>&1 && echo "$$tool" && break; done),bpftool)

# --- flags ------------------------------------------------------------------------------------------------------------
# Warnings are errors with the compiler the project is developed with, and in the pipeline. A newer compiler's new
# warning must not keep anybody from building a released version.
CC_MAJOR := $(shell $(CC) -dumpversion 2>/dev/null | cut -d. -f1)
WERROR ?= $(if $(filter 12,$(CC_MAJOR)),1,0)
ERROR := $(if $(filter-out 0,$(WERROR)),-Werror)

WARN := -Wall -Wextra -Wshadow -Wvla -Wformat=2 -Wmissing-prototypes -Wswitch-enum -Wimplicit-fallthrough \
	-Wpointer-arith -Wwrite-strings -Wundef -Wdate-time $(ERROR)
HARDEN := -fstack-protector-strong -fstack-clash-protection -fno-strict-overflow \
	$(if $(filter amd64,$(ARCH)),-fcf-protection) $(if $(filter arm64,$(ARCH)),-mbranch-protection=standard)
FORTIFY := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
HARDEN_LD := -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code -Wl,--as-needed -Wl,--build-id=sha1
OPTIMIZE := -O2 -g
PREFIX_MAP := -ffile-prefix-map=$(CURDIR)=.
SYSROOT_FLAG := $(if $(SYSROOT),--sysroot=$(SYSROOT))

ifeq ($(MODE),sanitize)
# The address sanitizer does not go with fortified functions: it would miss what they check.
OPTIMIZE := -O1 -g -fno-omit-frame-pointer
FORTIFY := -U_FORTIFY_SOURCE
MODE_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all
else ifeq ($(MODE),fuzz)
CC := $(CLANG)
OPTIMIZE := -O1 -g -fno-omit-frame-pointer
FORTIFY := -U_FORTIFY_SOURCE
MODE_FLAGS := -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all
endif

# Instrumented code confuses the compiler's own flow analysis: the ordinary build is where warnings count.
ifneq ($(MODE),)
WARN := -w
endif
C_FLAGS := -std=gnu17 $(OPTIMIZE) $(WARN) $(HARDEN) -fPIE $(PREFIX_MAP) $(SYSROOT_FLAG) $(MODE_FLAGS) $(CFLAGS)
CPP_FLAGS := -D_GNU_SOURCE -DTHROTTLESCOPE_VERSION='"$(VERSION)"' $(FORTIFY) -I$(B)/bpf $(CPPFLAGS)
LD_FLAGS := $(HARDEN_LD) $(SYSROOT_FLAG) $(MODE_FLAGS) $(LDFLAGS)
LIBS := -lbpf -lelf -lz -lcjson

BPF_FLAGS := -target bpf -mcpu=v3 -std=gnu11 -O2 -g -Ibpf $(PREFIX_MAP) \
	-Wall -Wextra -Wno-unused-parameter -Wno-missing-declarations $(ERROR)

# --- sources ----------------------------------------------------------------------------------------------------------
LAYERS := base host probe runtimes judge kube report cmd
SOURCES := $(sort $(wildcard $(LAYERS:%=agent/%/*.c)))
OBJECTS := $(SOURCES:%.c=$(B)/%.o)
SKELETON := $(B)/bpf/throttlescope.skel.h
UNIT_TESTS := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(sort $(wildcard tests/unit/*.c)))
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))

.PHONY: all
all: $(B)/throttlescope ## the program (default)

$(B)/throttlescope: $(B)/agent/main.o $(B)/throttlescope.a
	$(Q)$(call say,LINK,$@)
	$(Q)$(CC) $(LD_FLAGS) -o $@ $^ $(LIBS)

# Rebuilt from nothing: an archive would keep the objects of sources that are gone.
$(B)/throttlescope.a: $(OBJECTS) $(B)/flags
	$(Q)$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcsD $@ $(OBJECTS)

$(B)/agent/%.o: agent/%.c $(B)/flags agent/base/banned.h
	$(Q)$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CPP_FLAGS) $(C_FLAGS) -include agent/base/banned.h -MMD -MP -c -o $@ $<

$(filter $(B)/agent/probe/%,$(OBJECTS)): | $(SKELETON)

# Changes only when what would be made changes: flags, compiler, version, list of sources.
.PHONY: force
$(B)/flags: force
	$(Q)mkdir -p $(@D) && printf '%s\n' '$(subst ','\'',$(CC) $(CPP_FLAGS) $(C_FLAGS) $(LD_FLAGS) $(LIBS) \
		$(BPF_FLAGS))' $(SOURCES) >$@.$$$$ && if cmp -s $@.$$$$ $@; then rm $@.$$$$; else mv $@.$$$$ $@; fi

# --- the BPF programs: one object for every kernel and architecture -------------------------------------------------
$(B)/bpf/throttlescope.unlinked.o: bpf/throttlescope.bpf.c $(B)/flags
	$(Q)$(call say,BPF,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(BPF_FLAGS) -MMD -MP -MT $@ -MF $(@:.o=.d) -c -o $@ $<

# Leaves out the debugging sections but BTF, which would be in every copy of the program.
$(B)/bpf/throttlescope.bpf.o: $(B)/bpf/throttlescope.unlinked.o
	$(Q)$(BPFTOOL) gen object $@ $<

$(B)/bpf/throttlescope.skel.h: $(B)/bpf/throttlescope.bpf.o
	$(Q)$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name throttlescope_bpf >$@

# --- tests ------------------------------------------------------------------------------------------------------------
$(B)/tests/unit/%: tests/unit/%.c $(B)/throttlescope.a
	$(Q)$(call say,TEST,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CPP_FLAGS) $(C_FLAGS) -MMD -MP -MF $@.d $(LD_FLAGS) -o $@ $< \
		$(B)/throttlescope.a $(LIBS) -lcriterion

# The kept inputs of each fuzzer, run once by an ordinary program.
$(B)/tests/replay/%: tests/fuzz/%.c tests/fuzz/replay.c $(B)/throttlescope.a
	$(Q)$(call say,TEST,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CPP_FLAGS) $(C_FLAGS) -MMD -MP -MF $@.d $(LD_FLAGS) -o $@ $< tests/fuzz/replay.c \
		$(B)/throttlescope.a $(LIBS)

$(B)/tests/fuzz/%: tests/fuzz/%.c $(B)/throttlescope.a
	$(Q)$(call say,FUZZER,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CPP_FLAGS) $(C_FLAGS) -fsanitize=fuzzer -MMD -MP -MF $@.d $(LD_FLAGS) -o $@ $< \
		$(B)/throttlescope.a $(LIBS)

# Workloads that the tests measure; the native and the kernel tests start them.
BUILD := $(B)
-include tests/workloads/Makefile.inc
LOAD_CFLAGS := $(filter-out -Werror,$(LOAD_CFLAGS)) $(ERROR)
WORKLOADS := $(if $(MODE),,$(B)/tests/load $(B)/tests/truth)

# Compares what the probe measures with what the workloads' own clocks say.
$(B)/tests/truth: $(wildcard tests/native/*.c tests/native/*.h) $(B)/throttlescope.a
	$(Q)$(call say,TEST,tests/native)
	$(Q)mkdir -p $(@D) && $(CC) $(CPP_FLAGS) $(C_FLAGS) $(LD_FLAGS) -o $@ $(filter %.c,$^) $(B)/throttlescope.a $(LIBS) -lm

.PHONY: tests workloads
tests: $(UNIT_TESTS) $(FUZZERS:%=$(B)/tests/replay/%) $(WORKLOADS) ## compiles the tests without running them
workloads: $(WORKLOADS)

# The packages come first, and make runs again after them: which tools there are is looked up when it starts.
.PHONY: test deps
deps: ## installs the packages that building and testing need
	$(Q)tests/install-deps.sh
test: deps ## all tests of this machine: unit, scenarios, native, real programs
	$(Q)tests/install-deps.sh programs || echo "going on with the programs there are"
	$(Q)$(SUBMAKE) all tests
	$(Q)BUILD=$(B) tests/run.sh unit corpus scenarios native programs

.PHONY: unit
unit: all tests ## the unit tests
	$(Q)BUILD=$(B) tests/run.sh unit corpus

.PHONY: programs
programs: all workloads ## the tests with real programs
	$(Q)BUILD=$(B) tests/run.sh programs

.PHONY: sanitize
sanitize: ## the unit tests with the address and undefined-behaviour sanitizers
	$(Q)$(SUBMAKE) MODE=sanitize B=$(B)/sanitize all tests
	$(Q)BUILD=$(B)/sanitize tests/run.sh sanitize

.PHONY: fuzz
fuzz: ## each fuzzer for FUZZ_SECONDS (10)
	$(Q)$(SUBMAKE) MODE=fuzz B=$(B)/fuzz $(FUZZERS:%=$(B)/fuzz/tests/fuzz/%)
	$(Q)BUILD=$(B)/fuzz tests/run.sh fuzz

.PHONY: check
check: ## format, static analysis, layers, licenses, shell scripts, reproducible build
	$(Q)$(SUBMAKE) $(SKELETON)
	$(Q)BUILD=$(B) CLANG_FORMAT=$(CLANG_FORMAT) CLANG_TIDY=$(CLANG_TIDY) TIDY_FLAGS='$(subst ','\'',$(CPP_FLAGS))' \
		tests/run.sh check reproducible

# The arm64 half is left out, with its reason in the sum, where the cross compiler or its libraries cannot be had.
.PHONY: matrix
matrix: all workloads ## the kernel tests in virtual machines, one a kernel
	$(Q)flags=$$(tests/kernels/sysroot-arm64.sh) && \
		eval "$(SUBMAKE) $$flags ARCH=arm64 B=$(B)/arm64 all workloads" || echo "no programs for arm64"
	$(Q)BUILD=$(B) tests/run.sh matrix

.PHONY: demo bench lab-threads lab-burst-api lab-haproxy
demo: ## makes a throttled container and shows what the program says about it
	$(Q)tests/install-deps.sh build
	$(Q)$(SUBMAKE) all $(B)/tests/load
	$(Q)BUILD=$(B) tests/demo.sh
bench: all workloads ## what the program costs
	$(Q)BUILD=$(B) tests/bench/run.sh
lab-threads: all workloads ## the thread experiments
	$(Q)BUILD=$(B) tests/lab/threads.sh
lab-burst-api: all workloads ## an API slow below its limit, and why
	$(Q)BUILD=$(B) python3 -B tests/lab/burst_api.py
lab-haproxy: all workloads ## 48 threads on one CPU against one
	$(Q)BUILD=$(B) python3 -B tests/lab/haproxy.py

# --- the rest ---------------------------------------------------------------------------------------------------------
PREFIX ?= /usr/local
.PHONY: install
install: all ## honours DESTDIR and PREFIX (/usr/local)
	$(Q)install -D -m 0755 $(B)/throttlescope '$(DESTDIR)$(PREFIX)/bin/throttlescope'
	$(Q)install -D -m 0644 LICENSE '$(DESTDIR)$(PREFIX)/share/doc/throttlescope/LICENSE'
	$(Q)install -D -m 0644 bpf/LICENSE '$(DESTDIR)$(PREFIX)/share/doc/throttlescope/LICENSE.bpf'

.PHONY: format
format: ## formats the C sources in place
	$(Q)$(CLANG_FORMAT) -i $$(tests/check.sh --list-c)

.PHONY: clean
clean: ## removes build/
	$(Q)rm -rf build

.PHONY: version
version: ## prints the version
	@echo $(VERSION)

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		awk -F'|' '{ printf "  make %-12s %s\n", $$1, $$2 }'

-include $(OBJECTS:.o=.d) $(B)/agent/main.d $(B)/bpf/throttlescope.unlinked.d $(UNIT_TESTS:%=%.d) \
	$(FUZZERS:%=$(B)/tests/replay/%.d) $(FUZZERS:%=$(B)/tests/fuzz/%.d)
