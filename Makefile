# Everything that people and CI do. One profile (release), so that nothing is compiled twice for nothing.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
CARGO ?= cargo
NEARFAR := target/release/nearfar
PREFIX ?= /usr/local
# Where "make install" takes what is built from.
BUILT ?= target/release
# Below PREFIX.
PKGCONFIG ?= lib/pkgconfig

.PHONY: help all build demo test quick bench truth verify misses check loom fuzz fuzzers soak docs figures messages install uninstall dist clean

help: ## This list
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 14

all: build

build: ## Everything, into target/release
	$(CARGO) build --release --workspace
	for name in memkind autohbw memtier; do ln -sf lib$$name.so target/release/lib$$name.so.0; done

# Two minutes: a program with three times its near memory, beside all-DRAM and (as root) kernel swap.
demo: build ## Two minutes: the main job on real work, with figures of this machine
	$(NEARFAR) demo

# The tests load libnearfar.so, so it is built first. What was skipped, and why, is listed at the end.
test: build ## All tests; what is skipped is listed with its reason
	mkdir -p target
	$(CARGO) test --release --workspace -- --show-output 2>&1 | tee target/test.log || \
	{ status=$$?; echo "Failed, once more and in short:"; grep -A 6 ' panicked at ' target/test.log | tail -n 80 || true; exit $$status; }
	@echo; echo "Skipped:"; grep -ihE '^ *(skip|skipped|skipping)\b' target/test.log | sort | uniq -c || echo "  nothing"

# For each change: what can be told in less than a minute on two CPUs, the build of these tests included (the first one takes some four,
# into target/debug). Without the statistics of many simulated runs; those and the rest are for "make test". Overflows are errors here.
quick: ## What can be told in a minute: unit tests of what holds no state of a process, and the rules of the texts
	$(CARGO) test --package nearfar-core --package nearfar-sys --lib -- --skip profile::truth --skip judge
	$(CARGO) test --package nearfar-rules

# Efficiency curves against all-DRAM, kernel swap and mmap of a file, on this machine's disk.
bench: build ## Efficiency beside all-DRAM, kernel swap and mmap
	$(NEARFAR) bench

# Profiles of programs whose traffic is known, beside the truth; then what profiling costs three programs.
truth: build ## Profiles of programs whose traffic is known; what profiling costs
	$(NEARFAR) bench profile
	$(NEARFAR) bench profile overhead

# Programs profiled, advised and run as advised: predicted beside measured. Then works of the suite and five other programs: run time by
# near size, from a trace, beside measured.
verify: build ## Predicted run times beside measured ones
	$(NEARFAR) bench profile verify
	$(NEARFAR) bench profile curve --runs 3

# Miss-ratio curves of profiles beside a replay of every visit of a page.
misses: build ## Miss-ratio curves beside an exact replay
	$(NEARFAR) bench profile misses

check: ## Format, lints and documentation
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --all-targets -- -D warnings
	# In two steps: the command and the library are both called nearfar, and rustdoc would write both to one place.
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --workspace --exclude nearfar --no-deps --document-private-items
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --package nearfar --no-deps --document-private-items
	# The oldest Rust that is promised, where it is installed: no lint sees all that it lacks.
	version=$$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml); if rustup toolchain list 2>/dev/null | grep -q "^$$version-"; then \
		rustup run $$version cargo check --workspace --target-dir target/oldest; \
	else echo "skipped: no Rust $$version (rustup toolchain install $$version --profile minimal)"; fi

# State machines that several processes or threads share without a lock: every order of the steps of small models.
loom: ## Every order of the steps of small concurrent models
	RUSTFLAGS="--cfg loom" CARGO_PROFILE_RELEASE_OPT_LEVEL=0 $(CARGO) test --release --package nearfar-tiers --target-dir target/loom --lib loom

# Many more cases of the property tests than `make test` takes.
fuzz: ## Many more cases of the property tests
	PROPTEST_CASES=$${PROPTEST_CASES:-20000} $(CARGO) test --release --package nearfar-core

# Each parser of files, of what the kernel says and of the command line, for MINUTES=n. Needs "cargo install cargo-fuzz" and a nightly Rust.
fuzzers: ## Each parser under a fuzzer for MINUTES=n
	fuzz/seeds
	targets=$$($(CARGO) fuzz list); for target in $$targets; do \
	    $(CARGO) +nightly fuzz run $$target -- -max_total_time=$$((60 * $(MINUTES))) -timeout=20 -rss_limit_mb=4096 -print_final_stats=1; done

# Everything at once, for as long as one likes (MINUTES=n or HOURS=n), then the mover's long tests in guests, then
# SIGKILL at 200 random moments. Each round says how it can be repeated.
HOURS ?= 0
MINUTES ?= $(if $(filter-out 0,$(HOURS)),$(shell awk 'BEGIN { print 60 * $(HOURS) }'),10)
soak: build ## Everything at once for MINUTES=n or HOURS=n
	NEARFAR_SOAK_MINUTES=$(MINUTES) $(CARGO) test --release --test tests soak:: -- --ignored --nocapture
	$(CARGO) test --release --test tests numa_cache:: -- --ignored --nocapture
	NEARFAR_TEST_KILLS=200 $(CARGO) test --release --test tests kills:: -- --nocapture

# What is made from the code: man pages from the table of options, the table of counters in docs/reference/formats.md.
docs: build ## Man pages and tables that are made from the code
	$(NEARFAR) man docs/reference/man
	NEARFAR_BLESS=1 $(CARGO) test --release --bin nearfar the_document_lists_the_counters

# Works in the README's table and picture: eight kinds of access.
SHOWN := triad,poly-1024,gemm-tiled,lu-tiled,fft,md,cholesky,random

# The table, the picture and the page in docs/results, from the suite there.
figures: build ## Tables and pictures in README and docs/results
	for file in README.md docs/results/README.md; do \
	    grep -q '^<!-- figures -->$$' $$file && grep -q '^<!-- end of figures -->$$' $$file || { echo "$$file lacks the marks of the figures" >&2; exit 1; }; done
	$(NEARFAR) bench suite --figures docs/results/suite.json >target/figures-results.md
	$(NEARFAR) bench suite --figures docs/results/suite.json --only $(SHOWN) --ratios 2 --svg docs/results/suite.svg >target/figures-readme.md
	$(NEARFAR) report docs/results/suite.json -o docs/results/suite.html
	sed -i -e '/^<!-- figures -->$$/,/^<!-- end of figures -->$$/{//!d}' -e '/^<!-- figures -->$$/r target/figures-results.md' docs/results/README.md
	sed -i -e '/^<!-- figures -->$$/,/^<!-- end of figures -->$$/{//!d}' -e '/^<!-- figures -->$$/r target/figures-readme.md' README.md

# Every text that a user can get, to be read in one go.
messages: ## Every text that a user can get
	NEARFAR_LIST=1 $(CARGO) test --quiet --release --package nearfar-rules --test messages one_word -- --nocapture

SHARED := $(DESTDIR)$(PREFIX)/share
# Does not build: who installs as root often has no Rust there.
install: ## Into PREFIX (/usr/local), below DESTDIR
	@[ -e $(BUILT)/libmemkind.so ] || { echo "nothing is built yet: run \"make build\" first" >&2; exit 2; }
	install -Dm755 $(BUILT)/nearfar $(DESTDIR)$(PREFIX)/bin/nearfar
	install -Dm755 $(BUILT)/nearfar-kernel $(DESTDIR)$(PREFIX)/bin/nearfar-kernel
	install -Dm755 $(BUILT)/libnearfar.so $(DESTDIR)$(PREFIX)/lib/nearfar/libnearfar.so
	for name in memkind autohbw memtier; do \
	    install -Dm755 $(BUILT)/lib$$name.so $(DESTDIR)$(PREFIX)/lib/nearfar/lib$$name.so.0; \
	    ln -sf lib$$name.so.0 $(DESTDIR)$(PREFIX)/lib/nearfar/lib$$name.so; done
	for name in memkind-hbw-nodes memkind-auto-dax-kmem-nodes memtier; do ln -sf nearfar $(DESTDIR)$(PREFIX)/bin/$$name; done
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/$(PKGCONFIG)
	install -m644 include/*.h $(DESTDIR)$(PREFIX)/include/
	sed 's,@PREFIX@,$(PREFIX),' include/memkind.pc.in > $(DESTDIR)$(PREFIX)/$(PKGCONFIG)/memkind.pc
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	install -m644 docs/reference/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -d $(SHARED)/bash-completion/completions $(SHARED)/zsh/site-functions $(SHARED)/fish/vendor_completions.d
	$(BUILT)/nearfar completions bash > $(SHARED)/bash-completion/completions/nearfar
	$(BUILT)/nearfar completions zsh > $(SHARED)/zsh/site-functions/_nearfar
	$(BUILT)/nearfar completions fish > $(SHARED)/fish/vendor_completions.d/nearfar.fish
	$(MAKE) --no-print-directory install-api

# What "make install" with the same PREFIX and DESTDIR would put there; directories stay.
uninstall: ## Removes what install put there
	@list=$$(mktemp -d); trap 'rm -rf $$list' EXIT; \
	$(MAKE) -s --no-print-directory install DESTDIR=$$list && cd $$list && \
	find . ! -type d | while read -r path; do rm -f "$(DESTDIR)/$$path"; done

# A release: tarball, wheel, .deb, .rpm, bill of materials, checksums, in target/dist. Needs git, python3 with pip, dpkg-deb, rpmbuild.
dist: ## All packages of a release, into target/dist
	packaging/dist target/dist

# With the release: what "cargo install --git" makes of the last commit here. It compiles everything twice.
.PHONY: cargo-install
cargo-install: ## Tries "cargo install" of the last commit (six minutes)
	$(CARGO) test --release --test tests packages::cargo -- --ignored --nocapture

# For programmers: headers, pkg-config, the Fortran module as source (.mod files are each compiler's own), the Python package and
# the Rust crate (pip install, or a path, from share/nearfar), examples.
SHARE := $(DESTDIR)$(PREFIX)/share/nearfar
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
.PHONY: install-api
install-api:
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/$(PKGCONFIG) $(SHARE)/fortran $(SHARE)/python/nearfar \
	    $(SHARE)/rust/nearfar-alloc/src $(SHARE)/examples/vector_add_rust/src
	install -m644 include/nearfar.h include/nearfar.hpp $(DESTDIR)$(PREFIX)/include/
	sed 's,@PREFIX@,$(PREFIX),; s,@VERSION@,$(VERSION),' include/nearfar.pc.in > $(DESTDIR)$(PREFIX)/$(PKGCONFIG)/nearfar.pc
	install -m644 fortran/nearfar.F90 fortran/*.inc $(SHARE)/fortran/
	install -m644 python/pyproject.toml $(SHARE)/python/
	install -m644 python/nearfar/*.py $(SHARE)/python/nearfar/
	install -m644 rust/nearfar-alloc/Cargo.toml rust/nearfar-alloc/build.rs $(SHARE)/rust/nearfar-alloc/
	install -m644 rust/nearfar-alloc/src/*.rs $(SHARE)/rust/nearfar-alloc/src/
	install -m644 examples/Makefile examples/README.md examples/*.c examples/*.cpp examples/*.f90 examples/*.py $(SHARE)/examples/
	install -m644 examples/vector_add_rust/Cargo.toml examples/vector_add_rust/Cargo.lock $(SHARE)/examples/vector_add_rust/
	install -m644 examples/vector_add_rust/src/main.rs $(SHARE)/examples/vector_add_rust/src/

clean: ## Removes what was built
	$(CARGO) clean
