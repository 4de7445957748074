# make demo     the data pipeline, end to end         make test     everything that must hold
# make check    the quick part of test (a minute)    make fuzz     long random runs
# make bench    measured figures                     make soak     a million transactions, audited
# make update-cases   rewrite expectations           make test-cluster   cases on a cluster, and by Connect
# make upgrade  pin the newest releases              make test-latest   test with them, unpinned
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PARTS := lint types imports rest test-spark
# Each has a Spark of its own, which waits more than it works: side by side they take half the time.
ON_SPARK = printf '%s\n' 'tests/pipeline/test_[s-z]*.py' 'tests/pipeline/test_[!s-z]*.py' tests/spark \
  | xargs -P 2 -I '{}' sh -c '$(BIN)/pytest {}'

# Tests start a thousand processes; without byte code each of them compiles what it imports.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup upgrade demo demo-embedded demo-service test check lint types imports unit rest fuzz kills kills-elsewhere mutants bench soak \
  test-spark test-cluster test-latest update-cases clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt .ci/setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Deltalog needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) .ci/setup.py install $(VENV) $(LATEST)
	@touch $(STAMP)

upgrade: setup
	@$(PYTHON) .ci/setup.py upgrade $(VENV)

demo: setup
	@$(BIN)/python examples/demo.py

demo-embedded: setup
	@$(BIN)/python examples/demo_embedded.py

demo-service: setup
	@$(BIN)/python examples/demo_service.py

lint: setup
	$(BIN)/ruff check src tests bench examples .ci
	$(BIN)/ruff format --check src tests bench examples .ci

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

unit: setup
	$(BIN)/pytest -n 2 tests/unit tests/house

check: lint types imports unit

test: $(PARTS)

rest: setup
	$(BIN)/pytest -n 2 --dist worksteal --ignore=tests/spark --ignore=tests/pipeline

test-spark: setup
	$(ON_SPARK)

# Everything with the newest releases that pyproject.toml allows; what breaks is listed at the end.
test-latest:
	@rm -rf .venv-latest
	@$(MAKE) --no-print-directory VENV=.venv-latest LATEST=--latest setup
	@for part in $(PARTS); do \
	  $(MAKE) --no-print-directory VENV=.venv-latest LATEST=--latest $$part || broken="$$broken $$part"; \
	done; echo "broken by the newest releases:$${broken:- nothing}"; test -z "$$broken"

# All program cases on a standalone cluster (a master, two workers) and through Spark Connect: some
# 15 minutes, so it is not part of `make test`.
test-cluster: setup
	$(BIN)/python tests/spark/elsewhere.py cluster
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt 'pyspark[connect]'
	$(BIN)/python tests/spark/elsewhere.py connect

fuzz: setup
	DELTALOG_FUZZ=1 $(BIN)/pytest tests/properties -n 2 --durations=5
	DELTALOG_FUZZ=1 $(BIN)/pytest tests/spark
	DELTALOG_FUZZ=1 $(BIN)/pytest tests/pipeline/test_kills.py tests/pipeline/test_table_walks.py
	$(BIN)/python tests/walks --steps 20000

# Processes killed at random points of a state in tables: here, on a cluster (a master, two workers), and
# clients of Spark Connect. SEED says which.
KILLS ?= 50
KILLS_ELSEWHERE ?= 20
SEED ?= 20261118
KILLING = DELTALOG_KILL_SEED=$(SEED) DELTALOG_KILL_TALLY=$(CURDIR)/.kills.jsonl
MANY = tests/pipeline/test_kills.py -k many_kills

kills: setup
	$(KILLING) DELTALOG_KILLS=$(KILLS) $(BIN)/pytest -s $(MANY)

kills-elsewhere: setup
	$(KILLING) DELTALOG_KILLS=$(KILLS_ELSEWHERE) $(BIN)/python tests/spark/elsewhere.py cluster -s $(MANY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt 'pyspark[connect]'
	$(KILLING) DELTALOG_KILLS=$(KILLS_ELSEWHERE) $(BIN)/python tests/spark/elsewhere.py connect -s $(MANY)

mutants: setup
	$(BIN)/python tests/mutants/__main__.py

bench: setup
	$(BIN)/python -m bench

soak: setup
	$(BIN)/python -m bench.soak

update-cases: setup
	DELTALOG_UPDATE_CASES=1 $(BIN)/pytest -n 0 tests/unit tests/conformance tests/house
	DELTALOG_UPDATE_CASES=1 $(BIN)/pytest tests/pipeline/test_pipeline_errors.py
	@git status --short tests/cases docs

clean:
	rm -rf .venv .venv-latest .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist src/*.egg-info
