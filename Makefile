# Every target makes or refreshes .venv first (scripts/setup), which costs nothing when it is current.
.DEFAULT_GOAL := help
.PHONY: help setup install programs demo test check soak bench lint format docs screenshots clean

PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest
# Two for each processor: most tests wait for programs that they have started.
WORKERS := $(shell expr `nproc 2>/dev/null || echo 1` \* 2)
# Folders and scripts that hold Python; a missing one is left out.
CODE := $(wildcard src tests bench scripts/*.py)
REFERENCE := $(wildcard scripts/reference.py)
# The folders of tests/ that hold a test at full size.
SOAK_AREAS = $(sort $(shell grep -rl --include='test_*.py' 'mark.soak' tests | cut -d/ -f2))

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

setup: ## Make .venv (every other target does it too)
	@bash scripts/setup

install: setup ## Put one file, covey, into the folder of your own programs (or BIN=FOLDER), and nothing else
	@$(PYTHON) scripts/install.py "$(BIN)"

programs:
	@bash scripts/setup --tests

demo: setup ## Make a sample project with real bugs, let scripted agents mend them, and end green on main
	@$(PYTHON) -m covey.demo

test: programs lint ## All that must pass before a change lands: lint and the whole suite
	$(PYTEST) -n $(WORKERS) --dist loadgroup --hypothesis-profile=ci

check: programs lint ## The quick gate while you work: lint, the rules and the store
	$(PYTEST) -x -n auto --dist loadgroup $(wildcard tests/core tests/store)

soak: programs ## The tests at full size, area by area, an hour at most each; one alone: make soak AREA=line
	@for area in $(or $(AREA),$(SOAK_AREAS)); do \
	    echo "covey: soak of $$area ..."; \
	    $(PYTEST) tests/$$area -m soak -n 2 --dist loadgroup --timeout=3600 --session-timeout=3600 \
	        --hypothesis-profile=ci || failed="$$failed $$area"; \
	done; [ -z "$$failed" ] || { echo "covey: the soak failed in:$$failed" >&2; exit 1; }

bench: setup ## Measure, and print each figure beside its target and the best peer's
	$(PYTHON) -m bench

lint: setup ## Format, style, types, layers, and whether docs/reference is current
	$(PYTHON) -m ruff check $(CODE)
	$(PYTHON) -m ruff format --check $(CODE)
	$(PYTHON) -m mypy $(CODE)
	.venv/bin/lint-imports --no-logo
	$(if $(REFERENCE),$(PYTHON) $(REFERENCE) --check)

format: setup ## Rewrite the code as the formatter and the safe fixes want it
	$(PYTHON) -m ruff check --fix $(CODE)
	$(PYTHON) -m ruff format $(CODE)

docs: setup ## Write docs/reference again from the code
	$(if $(REFERENCE),$(PYTHON) $(REFERENCE))

screenshots: programs ## Take docs/images again: every view of the page at work, dark, light and on a phone
	$(PYTHON) scripts/screenshots.py

clean: ## Remove .venv and every cache
	rm -rf .cache .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find src tests bench scripts -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
