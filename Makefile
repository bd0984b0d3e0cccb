# goprof-bpf: one file builds everything, under build/ only (O=DIR: elsewhere). `make help` lists the targets.

MAKEFLAGS += --no-builtin-rules
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif
.SUFFIXES:
.DELETE_ON_ERROR:
.SECONDARY:
SHELL := /bin/bash
export PATH := $(PATH):/usr/sbin:/sbin

GOALS := $(or $(MAKECMDGOALS),all)
V ?= 0
Q := $(if $(filter 1,$(V)),,@)
# Shows what is made, unless the command itself is shown.
say = $(if $(Q),@printf '  %-8s%s\n' '$1' '$2')

# ARCH=arm64 on another machine builds for arm64, under build/arm64 and with the libraries in SYSROOT.
HOST_ARCH := $(patsubst aarch64,arm64,$(patsubst x86_64,amd64,$(shell uname -m)))
ifneq ($(origin ARCH),command line)
ARCH := $(HOST_ARCH)
endif
TRIPLET_amd64 := x86_64-linux-gnu
TRIPLET_arm64 := aarch64-linux-gnu
TRIPLET := $(or $(TRIPLET_$(ARCH)),$(error ARCH=$(ARCH) is neither amd64 nor arm64))
CROSS := $(if $(filter $(HOST_ARCH),$(ARCH)),,$(TRIPLET)-)
SYSROOT ?= $(HOME)/.cache/goprof-bpf/$(ARCH)
# In front of what looks for libraries. (What make exports does not reach $(shell).)
CROSS_ENV := $(if $(CROSS),CROSS=$(CROSS) ARCH=$(ARCH) SYSROOT='$(SYSROOT)' PKG_CONFIG_SYSROOT_DIR='$(SYSROOT)' \
	PKG_CONFIG_LIBDIR='$(SYSROOT)/usr/lib/$(TRIPLET)/pkgconfig')

# ASAN=1 makes the plain targets use the sanitized build.
O ?= build$(CROSS:$(TRIPLET)-=/$(ARCH))
B := $(if $(filter 1,$(ASAN)),$O/asan,$O)
export O
T ?= 60

# ---- what must be there, before anything is compiled --------------------------------------------

DEPS := tests/support/deps.sh
ifneq ($(filter deps demo test,$(GOALS)),)
MISSING := $(shell $(CROSS_ENV) CC=$(CROSS)gcc $(DEPS) install)
else ifneq ($(filter fuzz,$(GOALS)),)
MISSING := $(shell CC=gcc $(DEPS) fuzz)
else ifneq ($(filter-out clean help uninstall,$(GOALS)),)
MISSING := $(shell $(CROSS_ENV) CC=$(CROSS)gcc $(DEPS) check)
endif
ifneq ($(MISSING),)
$(error $(MISSING))
endif

# ---- flags --------------------------------------------------------------------------------------

ifeq ($(origin CC),default)
CC := $(CROSS)gcc$(if $(CROSS), --sysroot=$(SYSROOT))
endif
CLANG ?= clang
BPFTOOL ?= bpftool
LIBS := libbpf libelf libdw zlib libprotobuf-c capstone jansson
MULTIARCH := $(or $(shell $(CC) -print-multiarch 2>/dev/null),$(TRIPLET))
WARN := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes \
	$(if $(filter 1,$(WERROR)),-Werror)
OPT ?= -O2 -g
LIB_CFLAGS := $(shell $(CROSS_ENV) pkg-config --cflags $(LIBS) 2>/dev/null)
LIB_LDLIBS := $(shell $(CROSS_ENV) pkg-config --libs $(LIBS) 2>/dev/null) -lm -lpthread
# The program runs as root, so tables that are written once at the start become read-only.
LDFLAGS ?= -Wl,-z,relro,-z,now
CMOCKA_LIBS := $(shell $(CROSS_ENV) pkg-config --libs cmocka 2>/dev/null || echo -lcmocka)
# Generated headers are system headers here, so that our warnings do not judge them.
CPPFLAGS := -D_GNU_SOURCE -Iuser -Iinclude -isystem $O/gen $(LIB_CFLAGS)
TEST_CPPFLAGS := $(CPPFLAGS) -Itests -Itests/support -Itests/bpfhost -Itests/bpfhost/kernel -Ibpf
CFLAGS := -std=gnu11 $(WARN)
# Half of the compiler's work at -O2 -g; reports have their lines all the same.
SAN_OPT ?= -O1 -g1
SAN := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
BPF_ARCH := $(ARCH:amd64=x86)
BPF_CFLAGS := -O2 -g -mcpu=v3 -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -Wall \
	$(if $(filter 1,$(WERROR)),-Werror) -Iinclude -Ibpf \
	-I$(if $(CROSS),$(SYSROOT))/usr/include/$(MULTIARCH)

# ---- sources ------------------------------------------------------------------------------------

SRCS := $(wildcard user/*/*.c user/*/*/*.c user/*/*/*/*.c)
# SKIP='FILE...' leaves out files that do not compile yet.
LIB_SRCS := $(filter-out user/cli/main.c $(SKIP),$(SRCS))
OLD_KINDS := cpu exec_watch heap sched wait
SKELS := $(patsubst bpf/%.bpf.c,$O/gen/%.skel.h,$(wildcard bpf/*.bpf.c)) $(OLD_KINDS:%=$O/gen/%_old.skel.h)
BPF_OBJS := $(patsubst bpf/%.bpf.c,$O/bpf/%.bpf.o,$(wildcard bpf/*.bpf.c)) $(OLD_KINDS:%=$O/bpf/%.old.o)
# Folders under user/ that know no BPF.
LEAVES := base arch go target profile heapgraph output ingest subject sampling
PROTO := $(wildcard user/output/*.proto)
PB_H := $(PROTO:user/output/%.proto=$O/gen/%.pb-c.h)
PB_OBJ := $(PROTO:user/output/%.proto=gen/%.pb-c.o)
FLAME_PAGE := $(wildcard user/output/flame/flame.html user/output/flame/flame.css user/output/flame/flame_*.js)
SUPPORT_SRCS := $(filter-out %_main.c,$(wildcard tests/support/*.c))
SUPPORT_BINS := $(patsubst tests/support/%_main.c,tests/%,$(wildcard tests/support/*_main.c))
UNIT_BINS := $(patsubst %.c,%,$(wildcard tests/unit/test_*.c tests/bpfhost/test_*.c))
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
TOOLS := $(patsubst testdata/tools/%/go.mod,$O/tools/%,$(wildcard testdata/tools/*/go.mod))

# Objects follow the flags they were made with, and the library the list of its sources.
# $(call stamp,FILE,TEXT) writes FILE only when TEXT differs from what it has.
differ = $(filter-out $1,$2)$(filter-out $2,$1)
stamp = $(if $(call differ,$2,$(file <$1)),$(shell mkdir -p $(dir $1))$(file >$1,$2))
ifneq ($(filter-out clean help deps uninstall,$(GOALS)),)
$(call stamp,$O/flags,$(CC) $(CLANG) $(OPT) $(SAN_OPT) $(CFLAGS) $(TEST_CPPFLAGS) $(LIB_LDLIBS) $(BPF_CFLAGS))
$(call stamp,$O/sources,$(LIB_SRCS))
endif

# ---- targets ------------------------------------------------------------------------------------

all: $(if $(wildcard user/cli/main.c),$B/goprof-bpf,$B/libgoprof.a) ## build the program (default)

deps: ## install what building and testing need (root; Debian 12 or newer)
	@echo "deps: everything is present"

demo: all ## profile a small Go program and show what takes CPU, memory and locks
	$(Q)tests/support/demo.sh

# For tests/e2e/unknown_go.sh: builds that do not know the newest one or two minor versions.
NEWEST := $O/newest/25/goprof-bpf $O/newest/26/goprof-bpf

TEST_BINS := $(addprefix $O/,$(UNIT_BINS) $(SUPPORT_BINS)) $(NEWEST) \
	$(addprefix $O/asan/,$(UNIT_BINS)) $O/asan/tests/corrupt \
	$(FUZZERS:%=$O/asan/tests/fuzz/replay_%)

test: all $(TEST_BINS) $(TOOLS) toolchains kernels ## run every test (root; the end-to-end part needs BPF)
	$(Q)tests/run.sh unit asan corpus layering golden e2e

unit: $(addprefix $B/,$(UNIT_BINS)) ## run the unit tests (ASAN=1: sanitized)
	$(Q)tests/run.sh $(if $(filter 1,$(ASAN)),asan,unit)

e2e: all $(addprefix $O/,$(SUPPORT_BINS)) $(NEWEST) $O/asan/tests/corrupt $(TOOLS) ## run the end-to-end tests (root); E2E=NAME runs one
	$(Q)tests/run.sh e2e

# On a bare machine a dozen are fetched, while the compiler has the other CPU. One that cannot be had
# now is asked for again by whoever needs it.
toolchains:
	$(Q)if command -v go >/dev/null; then tests/support/subjects.sh toolchains || true; fi

# For tests/e2e/kernels_*.sh, likewise.
kernels:
	$(Q)for arch in amd64 arm64; do ARCH=$$arch vmtest/run.sh fetch || true; $(MAKE) ARCH=$$arch deps || true; done

readers: all $O/tests/heapedges ## heapdump --hprof in its other readers, hprof-slurp too (needs cargo 1.88)
	$(Q)SLURP=1 E2E=heapdump_hprof tests/run.sh --show e2e

stress: all $(addprefix $O/,$(SUPPORT_BINS)) $(TOOLS) ## 1,000 attachings, 200 kills, 20 profilers at once, 200 processes, an hour of processes that start and end (root; 100 minutes)
	$(Q)SCRIPT_LIMIT=7200 tests/run.sh --show stress
	$(Q)CYCLES=1000 KILLS=200 COLLECTORS=20 SCRIPT_LIMIT=7200 E2E="stress heal" tests/run.sh --show e2e

bench: all $(addprefix $O/,$(SUPPORT_BINS)) $(TOOLS) ## measure cost beside perf and bpftrace (root)
	$(Q)tests/run.sh --show bench

soak: all $(addprefix $O/,$(SUPPORT_BINS)) $(TOOLS) ## windows under the budget 20 times over, and their errors' own spread (root; an hour); RUNS=
	$(Q)RUNS=$${RUNS:-20} SCRIPT_LIMIT=36000 E2E=budget tests/run.sh --show e2e

# Of the end-to-end scripts those that take only a part of their versions in `make test`.
WIDE_SCRIPTS := frames arm64 dumps trace_readers trace_out heapdump_hprof heapdump_types heap_probe heap_live heap_types cpu_hard cpu_more cpu_self cpu_leaf callbacks images wait \
	contention_probe contention_enable contention_read command
matrix: all $(addprefix $O/,$(SUPPORT_BINS)) $(TOOLS) ## every Go version x every kind of build (root; two hours); VERSIONS=, KINDS=
	$(Q)tests/matrix/run.sh
	$(Q)$(if $(VERSIONS)$(KINDS),,for s in $(WIDE_SCRIPTS); do WIDE=1 E2E=$$s tests/run.sh e2e || exit 1; done)

# Kernels of one architecture are tried with what was built for it; where none was named, both are made.
vmtest: $(if $(filter command,$(origin ARCH)),all $(addprefix $O/,tests/verifier tests/cycles tests/leak tools/pprofcheck)) ## boot twenty kernels in QEMU and try everything on them; K=7.2 or K=7.2-arm64 one (vmtest/kernels.txt), K=short the least
	$(Q)$(if $(filter command,$(origin ARCH)),ARCH=$(ARCH) SYSROOT='$(SYSROOT)' vmtest/run.sh,MAKE='$(MAKE)' vmtest/both.sh) $K

fuzz: $(FUZZERS:%=$O/fuzz/tests/fuzz/fuzz_%) ## fuzz each parser for T=60 seconds; FUZZ=NAME runs one
	$(Q)tests/support/fuzz.sh $T $(or $(FUZZ),$(FUZZERS))

layout: $O/tests/layoutgen ## make user/go/layout/layout_tab.c anew, from official toolchains (fetches 32)
	$(Q)tests/support/layoutgen.sh >$O/layout_tab.c && mv $O/layout_tab.c user/go/layout/layout_tab.c

# With WERROR=1 the objects that lint compiles are those that the tests link: CI compiles once.
LINT_O := $(if $(filter 1,$(WERROR)),$O,$O/lint)
lint: $(SKELS) $(PB_H) ## formatting, warnings as errors, layering, sizes
	+$(Q)CLANG='$(CLANG)' CPPFLAGS='$(TEST_CPPFLAGS)' CFLAGS='$(CFLAGS) $(OPT)' \
		OBJECTS='$(MAKE) --no-print-directory -k O=$(LINT_O) WERROR=1 CC=$(CC) CLANG=$(CLANG)' \
		OBJECTS_IN='$(LINT_O)/obj' \
		tests/support/lint.sh

objects: $(patsubst user/%.c,$O/obj/%.o,$(SRCS)) $(patsubst tests/%.c,$O/obj/tests/%.o,$(wildcard tests/*/*.c))
bpfobjects: $(BPF_OBJS)

# ---- installing ----

PREFIX ?= /usr/local
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
PACKAGE := $(addprefix $O/package/,goprof-bpf.1 goprof-bpf.bash _goprof-bpf goprof-bpf.fish)

install: all $(PACKAGE) ## install under PREFIX=/usr/local: program, man page, completion; DESTDIR=
	$(Q)install -Dm755 $B/goprof-bpf "$(DESTDIR)$(PREFIX)/bin/goprof-bpf"
	$(Q)install -Dm644 $O/package/goprof-bpf.1 "$(DESTDIR)$(PREFIX)/share/man/man1/goprof-bpf.1"
	$(Q)install -Dm644 $O/package/goprof-bpf.bash "$(DESTDIR)$(BASHDIR)/goprof-bpf"
	$(Q)install -Dm644 $O/package/_goprof-bpf "$(DESTDIR)$(ZSHDIR)/_goprof-bpf"
	$(Q)install -Dm644 $O/package/goprof-bpf.fish "$(DESTDIR)$(FISHDIR)/goprof-bpf.fish"

uninstall: ## remove what install put there; the same PREFIX and DESTDIR
	$(Q)rm -f "$(DESTDIR)$(PREFIX)/bin/goprof-bpf" "$(DESTDIR)$(PREFIX)/share/man/man1/goprof-bpf.1" \
		"$(DESTDIR)$(BASHDIR)/goprof-bpf" "$(DESTDIR)$(ZSHDIR)/_goprof-bpf" "$(DESTDIR)$(FISHDIR)/goprof-bpf.fish"

deb: all $(PACKAGE) ## build build/goprof-bpf_VERSION_ARCH.deb
	$(Q)rm -rf $O/deb && $(MAKE) --no-print-directory install DESTDIR=$(abspath $O/deb) \
		PREFIX=/usr ZSHDIR=/usr/share/zsh/vendor-completions
	$(Q)user/package/deb.sh $(abspath $O/deb) $O

clean: ## remove build/
	$(Q)chmod -R u+w $O 2>/dev/null; rm -rf $O

help: ## this list
	@sed -n 's/^\([a-z0-9]*\):.*## /\1\t/p' Makefile | expand -t 12
	@echo "Variables: V=1 shows commands, ASAN=1 sanitizes, CC, OPT='-O0 -g', T=seconds,"
	@echo "           ARCH=arm64 builds for arm64, under build/arm64 ('make deps ARCH=arm64' fetches its libraries)"

.PHONY: all deps demo test unit e2e toolchains kernels readers stress soak bench matrix vmtest fuzz layout lint objects bpfobjects install uninstall deb clean help

# ---- BPF: source, object, skeleton --------------------------------------------------------------

$O/bpf/%.bpf.o: bpf/%.bpf.c $O/flags
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@
	$(Q)llvm-strip -g $@
	@readelf -sW $@ | awk '$$4 == "FUNC" { printf "  %-8s  %s %d instructions\n", "", $$8, $$3 / 8 }'

# The same source for kernels before 5.15: user/probe/bpf_old.h.
$O/bpf/%.old.o: bpf/%.bpf.c $O/flags
	$(call say,BPF,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -DGPB_OLD -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@
	$(Q)llvm-strip -g $@

$O/gen/%.skel.h: $O/bpf/%.bpf.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf >$@

$O/gen/%_old.skel.h: $O/bpf/%.old.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_old >$@

# ---- protobuf -----------------------------------------------------------------------------------

$O/gen/%.pb-c.c $O/gen/%.pb-c.h: user/output/%.proto
	$(call say,PROTO,$<)
	@mkdir -p $(@D)
	$(Q)protoc-c --c_out=$O/gen --proto_path=user/output $<

# ---- C, once per variant: $1 directory, $2 compiler, $3 more flags ------------------------------

define VARIANT
$1/obj/%.o: user/%.c $O/flags
	$$(call say,CC,$$@)
	@mkdir -p $$(@D)
	$$(Q)$2 $$(CPPFLAGS) $$(CFLAGS) $$(OPT) $3 -MMD -MP -c $$< -o $$@

$1/obj/gen/%.pb-c.o: $O/gen/%.pb-c.c $O/gen/%.pb-c.h $O/flags
	$$(call say,CC,$$@)
	@mkdir -p $$(@D)
	$$(Q)$2 -w -std=gnu11 $$(OPT) $$(LIB_CFLAGS) $3 -I$O/gen -c $$< -o $$@

# Only the other folders include skeletons.
$(patsubst user/%.c,$1/obj/%.o,$(filter-out $(LEAVES:%=user/%/%),$(LIB_SRCS))): $(SKELS)
$(patsubst user/%.c,$1/obj/%.o,$(filter user/output/%,$(LIB_SRCS))): $(PB_H)

# The assembler embeds these files, so the compiler's dependency files do not list them.
$1/obj/output/flame/flame_page.o: $(FLAME_PAGE)

$1/libgoprof.a: $(patsubst user/%.c,$1/obj/%.o,$(LIB_SRCS)) $(addprefix $1/obj/,$(PB_OBJ)) $O/sources
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@ && $(CROSS)ar rcs $$@ $$(filter %.o,$$^)

$1/goprof-bpf: $1/obj/cli/main.o $1/libgoprof.a
	$$(call say,LINK,$$@)
	$$(Q)$2 $3 $$^ $$(LIB_LDLIBS) $$(LDFLAGS) -o $$@

$1/obj/tests/%.o: tests/%.c $O/flags $(SKELS) $(PB_H)
	$$(call say,CC,$$@)
	@mkdir -p $$(@D)
	$$(Q)$2 $$(TEST_CPPFLAGS) $$(CFLAGS) $$(OPT) $3 -MMD -MP -c $$< -o $$@

SUPPORT_$1 := $(patsubst %.c,$1/obj/%.o,$(SUPPORT_SRCS))

$(addprefix $1/,$(UNIT_BINS)): $1/tests/%: $1/obj/tests/%.o $$(SUPPORT_$1) $1/libgoprof.a
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$2 $3 $$^ $$(LIB_LDLIBS) $$(CMOCKA_LIBS) -o $$@

$1/tests/worlds: LIB_LDLIBS += $(CMOCKA_LIBS)
$(addprefix $1/,$(SUPPORT_BINS)): $1/tests/%: $1/obj/tests/support/%_main.o $$(SUPPORT_$1) \
		$1/libgoprof.a
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$2 $3 $$^ $$(LIB_LDLIBS) -o $$@

$(FUZZERS:%=$1/tests/fuzz/replay_%): $1/tests/fuzz/replay_%: $1/obj/tests/fuzz/fuzz_%.o \
		$1/obj/tests/fuzz/replay.o $$(SUPPORT_$1) $1/libgoprof.a
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$2 $3 $$^ $$(LIB_LDLIBS) -o $$@
endef

$(eval $(call VARIANT,$O,$$(CC),))
# Sanitizers move what the optimiser sees, and with it what it warns of.
$(eval $(call VARIANT,$O/asan,$$(CC),$$(SAN) $$(SAN_OPT) -Wno-error))
$(eval $(call VARIANT,$O/fuzz,$$(CLANG),$$(SAN) -fsanitize=fuzzer-no-link -Wno-error))

$O/fuzz/tests/fuzz/fuzz_%: $O/fuzz/obj/tests/fuzz/fuzz_%.o $(SUPPORT_$O/fuzz) \
		$O/fuzz/libgoprof.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(SAN) -fsanitize=fuzzer $^ $(LIB_LDLIBS) -o $@

# ---- the man page and completions: made from the program's own help ----------------------------

$(PACKAGE): $O/package/%: user/package/%.in $B/goprof-bpf $(wildcard user/package/*)
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q)user/package/generate.sh $B/goprof-bpf $< >$@

# ---- builds that do not know newer Go versions: newest/26 knows 1.26 and nothing after ----------

$O/newest/%/layout.o: user/go/layout/layout.c $O/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(OPT) -DLAYOUT_NEWEST_MINOR=$* -MMD -MP -c $< -o $@

$O/newest/%/goprof-bpf: $O/newest/%/layout.o $O/obj/cli/main.o $O/libgoprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $^ $(LIB_LDLIBS) $(LDFLAGS) -o $@

# ---- Go tools the tests judge with --------------------------------------------------------------

$(TOOLS): $O/tools/%: $(wildcard testdata/tools/*/*.go testdata/tools/*/go.*)
	$(call say,GO,$@)
	@mkdir -p $(@D)
	$(Q)$(if $(CROSS),GOARCH=$(ARCH)) tests/support/gotool.sh testdata/tools/$* $@

-include $(wildcard $O/bpf/*.d $O/newest/*/*.d) $(foreach v,$O $O/asan $O/fuzz, \
	$(wildcard $v/obj/*/*.d $v/obj/*/*/*.d $v/obj/*/*/*/*.d))
