# Two commands do all the set-up on a fresh machine with Python 3.11+ and make:
#
#   make conformance   run the suites on the reference and on the host driver, print the verdict
#   make test          lint, types, the site and all tests
#
# Both work in a virtual environment of their own, .venv, which they make and fill when it is missing or
# pyproject.toml is newer. Only that step needs a network.

PYTHON ?= python3
JOBS ?= 2
SEEDS ?= 0 1 2
BUDGET ?= ci

VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.base
DEV := $(VENV)/.dev
DOCS := $(VENV)/.docs
MUTATION := $(VENV)/.mutation
BROWSER := $(VENV)/.browser
PIP_INSTALL := -m pip --disable-pip-version-check --quiet install
# One at a time in an environment, also where make runs several jobs.
PIP = flock $(VENV)/.lock $(BIN)/python $(PIP_INSTALL)

# An environment for each file of ci/bindings, in which the suites run over the vendors' bindings.
BINDINGS := $(patsubst ci/bindings/%.txt,%,$(wildcard ci/bindings/*.txt))
BINDING_TESTS := tests/adapters tests/emulated tests/quirks tests/subjects tests/ci/test_device_check.py

# Most tests and every command start Pythons, which are twice as fast where what they import is compiled already.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help conformance test lint types tests docs check kills bindings browser machines bench docs-invariants mutate clean \
  $(BINDINGS:%=bindings-%)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; give one with PYTHON=")'
	$(PYTHON) -m venv $(VENV)

$(BASE): pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable .
	@touch $@

$(DEV): pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[dev]'
	@touch $@ $(BASE)

$(DOCS): $(DEV)
	$(PIP) --editable '.[dev,docs]'
	@touch $@

$(MUTATION): $(DEV)
	$(PIP) --editable '.[dev,mutation]'
	@touch $@

$(BROWSER): $(DEV)
	$(PIP) --editable '.[dev,browser]'
	@touch $@

$(VENV)-bindings/%/.installed: ci/bindings/%.txt pyproject.toml | $(VENV)/bin/python
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(PIP_INSTALL) --editable '.[dev,emulation]' --requirement $< || \
	  { echo "make: the bindings that $< names could not be installed" >&2; exit 1; }
	@touch $@

conformance: $(BASE) ## run the suites on the reference and on the host driver
	$(BIN)/python -m pytest --pyargs vmm_suites --vmm-subject reference --vmm-subject host \
	  --vmm-budget $(BUDGET) -n $(JOBS) --dist worksteal --quiet -p no:cacheprovider

test: lint types docs tests ## lint, types, the site and all tests

lint: $(DEV)
	$(BIN)/ruff check

types: $(DEV)
	$(BIN)/mypy
	$(BIN)/mypy benchmarks
	$(BIN)/mypy website

tests: $(DEV)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

docs: $(DOCS) ## build the documentation as a site in build/site; fails on a dead link
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

check: kills bindings browser machines ## what takes longer or needs more than Python: these four

kills: $(BASE) ## is every known-bad variant caught, with each of the seeds?
	$(BIN)/vmm-conformance mutants --seed $(SEEDS) --budget $(BUDGET) --jobs $(JOBS)

bindings: | $(VENV)/bin/python ## the vendors' bindings on the emulated libraries, in an environment per file of ci/bindings
	@$(MAKE) --no-print-directory --jobs=$(JOBS) --output-sync=target $(BINDINGS:%=bindings-%)

$(BINDINGS:%=bindings-%): bindings-%: $(VENV)-bindings/%/.installed
	$(<D)/bin/python -m pytest --quiet -p no:cacheprovider --no-skips $(BINDING_TESTS)
	for driver in emulated-hip emulated-cuda; do \
	  $(<D)/bin/vmm-conformance run --driver $$driver --subject $$driver --budget $(BUDGET) && \
	  $(<D)/bin/vmm-conformance run --driver $$driver --subject reference --budget smoke || exit 1; \
	done

browser: $(BROWSER) ## the tests of the report's page in a real browser, which has to be installed: chromium
	$(BIN)/python -m pytest --quiet --no-skips tests/browser

machines: $(DEV) ## the tests of runs on several machines, for which redis-server has to be installed
	$(BIN)/python -m pytest --quiet --no-skips tests/machines

bench: $(BASE) ## measure, and print what docs/benchmarks.md shows
	$(BIN)/python benchmarks/all.py

docs-invariants: $(BASE) ## write docs/invariants.md out of the catalogue
	$(BIN)/vmm-conformance list --markdown > docs/invariants.md.new
	mv docs/invariants.md.new docs/invariants.md

mutate: $(MUTATION) ## change the reference and the checkers mechanically; list what no test notices
	$(BIN)/python benchmarks/mutate.py --jobs $(JOBS)

clean: ## remove the virtual environment and what tools leave behind
	rm -rf $(VENV) $(VENV)-bindings build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .vmm
