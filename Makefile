# One graph for the whole tree. Objects go to build/CONFIG/, so that configurations live side by side:
#   make                       the program, ./memwall
#   make CONFIG=debug          -O0, for a debugger        make CC=clang CONFIG=clang   another compiler
# `make help` lists the targets.

CONFIG ?= release
ifeq ($(origin CC),default)
CC := gcc
endif
PREFIX ?= /usr/local
DESTDIR ?=
BUILD  := build/$(CONFIG)
VERSION := 0.1.0

CFLAGS_release := -O3 -g
CFLAGS_debug   := -O0 -g
CFLAGS_asan    := -O1 -g -fsanitize=address -fno-omit-frame-pointer
CFLAGS_ubsan   := -O1 -g -fsanitize=undefined -fno-sanitize-recover=all
CFLAGS_fuzz    := -O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer -Wno-maybe-uninitialized
CFLAGS_tsan    := -O1 -g -fsanitize=thread -Wno-maybe-uninitialized
CFLAGS_clang   := -O3 -g
CFLAGS_clang0  := -O0 -g
OPTIMISE ?= $(if $(CFLAGS_$(CONFIG)),$(CFLAGS_$(CONFIG)),-O2 -g)

# gcc guesses at snprintf lengths anew at every optimisation level; cutting a text short is meant.
GCC_QUIET := $(if $(findstring clang,$(CC)),,-Wno-format-truncation)
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
        -Wpointer-arith -Wwrite-strings -Wvla -Wundef -Wformat=2 -Werror $(GCC_QUIET)
# -ffp-contract=off: a fused multiply-add would make printed doubles depend on the compiler.
CPPFLAGS += -I. -D_GNU_SOURCE -DMEMWALL_VERSION='"$(VERSION)"'
CFLAGS   += -std=c11 $(OPTIMISE) $(WARN) -ffp-contract=off -fno-math-errno -pthread
LDLIBS   += -lcsv -lyaml -ljansson -lgsl -lgslcblas -luring -lpcre2-8 -lm -lpthread

# What Debian packages the build, the tests and the figures need.
PACKAGES := build-essential libcsv-dev libyaml-dev libjansson-dev libgsl-dev liburing-dev libpcre2-dev libcmocka-dev \
            libpcg-cpp-dev clang clang-format gnuplot-nox

# A folder is a module; a new .c file in one of them is built without touching this file.
FOLDERS := base models devices sim/core sim/policy sim/trace sim/roofline sim/replay sim/plan sim/pipeline experiments validate \
           kernels/formats kernels/isa kernels/loader kernels/store kernels/bench kernels/graph kernels/pack kernels/synth kernels/heads
# Files of one instruction set are named for it; those of other architectures than the compiler's are left out.
ARCH := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
ISAS_x86_64  := avx2 avx512
ISAS_aarch64 := neon
ISAS := $(ISAS_$(ARCH))
FOREIGN := $(foreach i,$(filter-out $(ISAS),$(ISAS_x86_64) $(ISAS_aarch64)),%_$(i).c) \
           $(filter-out %_$(ARCH).c,$(wildcard kernels/isa/isa_list_*.c))
FLAGS_avx2   := -mavx2 -mfma -mf16c
FLAGS_avx512 := $(FLAGS_avx2) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni
FLAGS_neon   := -march=armv8.2-a+dotprod+fp16
LIB_SRC := $(filter-out $(FOREIGN),$(sort $(foreach d,$(FOLDERS),$(wildcard $(d)/*.c))))
# gcc spends most of its time on these files following variables for the debugger; clang has no such flag.
LANE_QUIET := $(if $(findstring clang,$(CC)),,-fno-var-tracking)
# Checks of addresses as calls: inlined into these files they took gcc minutes a file.
LANE_QUIET += $(if $(findstring clang,$(CC)),,$(if $(findstring =address,$(OPTIMISE)),--param asan-instrumentation-with-call-threshold=0))
# Kernels written once over the sixteen lanes of lanes_ISA.h, and compiled for each instruction set.
LANE_SRC := $(sort $(wildcard kernels/isa/lanes/*.c))
LANE_ISAS := $(foreach i,$(ISAS),$(if $(wildcard kernels/isa/lanes_$(i).h),$(i)))
LANE_OBJ := $(foreach i,$(LANE_ISAS),$(LANE_SRC:%.c=$(BUILD)/%.$(i).o))
CLI_SRC := $(sort $(wildcard cli/*.c))
TEST_SRC := $(sort $(wildcard tests/test_*.c))
TEST_CXX := $(sort $(wildcard tests/*.cc))
SUPPORT_SRC := $(filter-out $(TEST_SRC),$(sort $(wildcard tests/*.c)))

LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o) $(LANE_OBJ)
CLI_OBJ := $(CLI_SRC:%.c=$(BUILD)/%.o)
SUPPORT_OBJ := $(SUPPORT_SRC:%.c=$(BUILD)/%.o) $(TEST_CXX:%.cc=$(BUILD)/%.o)
TESTS   := $(TEST_SRC:tests/%.c=$(BUILD)/tests/%)
PROGRAM := $(BUILD)/memwall

# Targets that stand in the README install what is missing first; plain `make` never does.
SELF_SETUP := demo plots check asan ubsan tsan lint same-bytes aarch64 aarch64-tests
NEED := $(if $(filter $(SELF_SETUP),$(MAKECMDGOALS)),setup)

# One short line a step; `make V=1` shows the commands.
run = $(if $(V),,@echo '  $(1)' >&2; )

.PHONY: all check asan ubsan lint same-bytes aarch64 setup demo plots check-browser cluster bench install clean help
.DELETE_ON_ERROR:
.SECONDARY:

## all: the program, ./memwall (what plain make does)
all: memwall

memwall: $(PROGRAM)
	@cp $(PROGRAM) memwall.tmp && mv memwall.tmp memwall

$(PROGRAM): $(CLI_OBJ) $(BUILD)/libmemwall.a
	$(call run,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(CLI_OBJ) $(BUILD)/libmemwall.a $(LDLIBS)

# A file that came or went changes the library even where no object is newer than it.
$(BUILD)/libmemwall.list: FORCE
	@mkdir -p $(@D)
	@echo '$(LIB_OBJ)' | cmp -s - $@ || echo '$(LIB_OBJ)' > $@
.PHONY: FORCE

$(BUILD)/libmemwall.a: $(LIB_OBJ) $(BUILD)/libmemwall.list
	@rm -f $@
	$(call run,$@)$(AR) rcs $@ $(LIB_OBJ)

$(BUILD)/%.o: %.c | $(NEED)
	@mkdir -p $(@D)
	$(call run,$@)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

define isa_rules
$(BUILD)/%_$(1).o: CFLAGS += $(FLAGS_$(1))
$(BUILD)/%.$(1).o: %.c | $(NEED)
	@mkdir -p $$(@D)
	$$(call run,$$@)$$(CC) $$(CPPFLAGS) -DLANES=$(1) -DLANES_HEADER='"kernels/isa/lanes_$(1).h"' $$(CFLAGS) $$(FLAGS_$(1)) \
	    $$(LANE_QUIET) -MMD -MP -c -o $$@ $$<
endef
$(foreach i,$(ISAS),$(eval $(call isa_rules,$(i))))

$(BUILD)/%.o: %.cc | $(NEED)
	@mkdir -p $(@D)
	$(call run,$@)$(CXX) -I. -std=c++17 $(OPTIMISE) -Wall -Wextra -MMD -MP -c -o $@ $<

$(BUILD)/tests/test_%: $(BUILD)/tests/test_%.o $(SUPPORT_OBJ) $(BUILD)/libmemwall.a
	$(call run,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $(SUPPORT_OBJ) $(BUILD)/libmemwall.a $(LDLIBS) -lcmocka $(if $(TEST_CXX),-lstdc++)

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(SUPPORT_OBJ:.o=.d) $(TESTS:=.d)

## check: build everything and run all tests (installs what is missing)
check: memwall $(TESTS)
	@MEMWALL=$(PROGRAM) tests/run-tests $(TESTS)

## asan: all tests under AddressSanitizer and LeakSanitizer
asan:
	@$(MAKE) --no-print-directory CONFIG=asan check-only
## ubsan: all tests under UndefinedBehaviorSanitizer
ubsan:
	@$(MAKE) --no-print-directory CONFIG=ubsan check-only
## tsan: the tests that run threads under ThreadSanitizer
TSAN_TESTS := workers engine_loader engine_faults engine_golden engine_decisions engine_failures
tsan:
	@$(MAKE) --no-print-directory CONFIG=tsan tsan-only
tsan-only: $(TSAN_TESTS:%=$(BUILD)/tests/test_%)
	@TSAN_OPTIONS="suppressions=tests/tsan.supp" tests/run-tests $^
.PHONY: tsan tsan-only
## fuzz-engine: damaged model files through the engine under AddressSanitizer, FUZZ_SECONDS long
FUZZ_SECONDS := 600
FUZZ_SEED    := 1
FUZZ_FILES   := $(wildcard ../shared/data/golden/*.gguf)
fuzz-engine:
	@$(MAKE) --no-print-directory CONFIG=fuzz build/fuzz/tests/fuzz/fuzz_engine
	build/fuzz/tests/fuzz/fuzz_engine $(FUZZ_SECONDS) $(FUZZ_SEED) $(FUZZ_FILES)
$(BUILD)/tests/fuzz/fuzz_engine: $(BUILD)/tests/fuzz/fuzz_engine.o $(BUILD)/tests/engine_rig.o $(BUILD)/libmemwall.a
	$(call run,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)
.PHONY: fuzz-engine
.PHONY: check-only
check-only: $(PROGRAM) $(TESTS)
	@MEMWALL=$(PROGRAM) tests/run-tests $(TESTS)

## lint: formatting, include table, stems
lint: | $(NEED)
	@tests/check-includes
	@clang-format --dry-run --Werror $$(git ls-files '*.c' '*.h')

## same-bytes: the same output from gcc and clang, -O0 and -O3
SAME_BYTES := gcc-O0 gcc-O3 clang-O0 clang-O3
same-bytes: | $(NEED)
	@for c in $(SAME_BYTES); do \
	    $(MAKE) --no-print-directory -s CONFIG=$$c CC=$${c%-*} OPTIMISE=-$${c#*-} build/$$c/memwall \
	    || exit 1; done
	@tests/same-bytes $(SAME_BYTES)

## aarch64: the same output from a program for aarch64, under qemu (installs a cross compiler)
aarch64: | $(NEED)
	+@tests/cross-aarch64
## aarch64-tests: the tests of the kernels in a program for aarch64, under qemu (slow)
.PHONY: aarch64-tests
aarch64-tests: | $(NEED)
	+@tests/cross-aarch64 tests

## demo: plan, run, calibrate, simulate, compare, two figures in build/demo (installs what is missing)
DEMO := build/demo
demo: memwall
	@mkdir -p $(DEMO)
	./memwall plan qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --dram 6GiB
	./memwall replay --trace tests/data/demo.trace.csv --policy lru,s3fifo,belady --cache 1GiB,2GiB,4GiB
	./memwall engine run models/tiny/tiny-q4_0.gguf --prompt "In the beginning" --cache 4MiB --trace-out $(DEMO)/run.trace.csv \
	    --timeline $(DEMO)/measured.json
	./memwall calibrate --quick --out $(DEMO)/here.yaml
	./memwall sim --model models/tiny/tiny-q4_0.gguf --device $(DEMO)/here.yaml --profile memwall --policy lru --cache 4MiB \
	    --trace $(DEMO)/run.trace.csv --timeline $(DEMO)/simulated.json
	./memwall validate diff $(DEMO)/simulated.json $(DEMO)/measured.json --from-pass 1
	./memwall validate measured --quick --format csv >$(DEMO)/measured.csv
	./memwall plot $(DEMO)/measured.csv --kind predicted --out $(DEMO)/predicted.svg
	./memwall plot $(DEMO)/measured.json --out $(DEMO)/token.svg

## bench: speed of the program itself
bench: memwall
	./memwall bench replay
	./memwall bench read
	./memwall bench sim
	./memwall bench sweep

## studies: run every experiment again and say which committed results changed (experiments/rerun.sh writes them)
.PHONY: studies
studies: memwall
	experiments/rerun.sh --check

## plots: draw every committed figure anew from committed results
plots: memwall
	plots/figures.sh

## check-browser: open pages of memwall report in headless Chromium (installs it)
check-browser: memwall
	tests/check-browser

## cluster: run the shards of a sweep under Slurm and GNU parallel on this host (installs both; needs root)
cluster: memwall
	experiments/cluster/try-here

## engine-bench: the engine's kernels and reads beside what memory, arithmetic and the disk give here
.PHONY: engine-bench
engine-bench: memwall
	./memwall engine bench kernels --format csv
	./memwall engine bench kernels --format csv --batch 1 --busy 1
	./memwall engine bench loader --format csv

## setup: install missing Debian packages
setup:
	@missing=; for p in $(PACKAGES); do \
	    dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then echo "installing$$missing" >&2; \
	    sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	    $$sudo apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends $$missing >&2; fi

## install: program and catalogue under DESTDIR/PREFIX
CATALOGUE := models/desc devices/desc sim/trace/presets sim/pipeline/profiles sim/plan/measured.csv \
             models/tiny/README.md models/tiny/tiny-q4_0.gguf \
             $(wildcard validate/data/*.csv) $(wildcard experiments/*.yaml plots/*.gp)
install: $(PROGRAM)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/memwall
	install -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/memwall
	for f in $$(git ls-files $(CATALOGUE) 2>/dev/null || find $(CATALOGUE) -type f); do \
	    install -D -m 644 $$f $(DESTDIR)$(PREFIX)/share/memwall/$$f; done

## clean: remove everything built
clean:
	rm -rf build memwall

## help: this list
help:
	@sed -n 's/^## /  make /p' Makefile
