# Every target makes or refreshes .venv first (scripts/setup), which costs nothing when it is current.
.DEFAULT_GOAL := help
.PHONY: help setup install programs page-tools demo test check soak bench lint format docs screenshots clean

PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest
# Two for each processor: most tests wait for programs that they have started.
WORKERS := $(shell expr `nproc 2>/dev/null || echo 1` \* 2)
# Folders and scripts that hold Python; a missing one is left out.
CODE := $(wildcard src tests bench scripts/*.py)
# The tools that check the page's code (scripts/page_tools)
PAGE_TOOLS := .cache/page-tools/bin
REFERENCE := $(wildcard scripts/reference.py)
# The folders of tests/ that hold a test at full size; end_to_end is several areas, one for each subject.
SOAK_AREAS = $(sort $(shell grep -rl --include='test_*.py' 'mark.soak' tests | sed -E 's,^tests/((end_to_end/)?[^/]+)/.*,\1,'))
# The tests that try examples; the soak looks for new ones, and for more of them than `make test` tries.
PROPERTIES = $(shell grep -rl --include='test_*.py' '^from hypothesis' tests)

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

setup: ## Make .venv (every other target does it too)
	@bash scripts/setup

install: setup ## Put one file, covey, into the folder of your own programs (or BIN=FOLDER), and nothing else
	@$(PYTHON) scripts/install.py "$(BIN)"

programs:
	@bash scripts/setup --tests

page-tools: setup
	@bash scripts/page_tools

demo: setup ## Make a sample project with real bugs, let scripted agents mend them, and end green on main
	@$(PYTHON) -m covey.demo

test: programs lint ## All that must pass before a change lands: lint and the whole suite
	$(PYTEST) -n $(WORKERS) --dist loadgroup --hypothesis-profile=ci

check: programs lint ## The quick gate while you work: lint, the rules and the store
	$(PYTEST) -x -n auto --dist loadgroup $(wildcard tests/core tests/store)

soak: programs ## The tests at full size, area by area, an hour at most each; one alone: make soak AREA=git
	@for area in $(or $(AREA),$(SOAK_AREAS) properties); do \
	    echo "covey: soak of $$area ..."; \
	    case $$area in properties) tests="$(PROPERTIES)" ;; *) tests="tests/$$area -m soak" ;; esac; \
	    $(PYTEST) $$tests -n 2 --dist loadgroup --timeout=3600 --session-timeout=3600 \
	        --hypothesis-profile=soak || failed="$$failed $$area"; \
	done; [ -z "$$failed" ] || { echo "covey: the soak failed in:$$failed" >&2; exit 1; }

bench: setup ## Measure, and print each figure beside its target and the best peer's
	$(PYTHON) -m bench

lint: setup page-tools ## Format, style, types, layers, and whether what is made from the code is current
	$(PYTHON) -m ruff check $(CODE)
	$(PYTHON) -m ruff format --check $(CODE)
	$(PYTHON) -m mypy $(CODE)
	.venv/bin/lint-imports --no-logo
	$(PAGE_TOOLS)/biome check --error-on-warnings
	$(PYTHON) scripts/page_types.py --check
	$(PYTHON) scripts/page_check.py
	$(if $(REFERENCE),$(PYTHON) $(REFERENCE) --check)

format: setup page-tools ## Rewrite the code as the formatter and the safe fixes want it
	$(PYTHON) -m ruff check --fix $(CODE)
	$(PYTHON) -m ruff format $(CODE)
	$(PAGE_TOOLS)/biome format --write

docs: setup ## Write again what is made from the code: docs/reference, the map, routes of the command line, types of the page
	$(if $(REFERENCE),$(PYTHON) $(REFERENCE))
	$(PYTHON) scripts/page_types.py

screenshots: programs ## Take docs/images again: every view of the page at work, dark, light and on a phone
	$(PYTHON) scripts/screenshots.py

clean: ## Remove .venv and every cache
	rm -rf .cache .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find src tests bench scripts -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
