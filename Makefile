# make demo   the embedded study, from download to table and report
# make test   everything that continuous integration runs
# make lint   the static checks only
# make chaos  random faults for MINUTES (30), with seeds from SEED (1) on: docs/chaos.md
# make perf   each measurement of perf/ once at a small size
# make docs   the documentation site, in build/docs
# make develop  the environment for tests and checks
# make clean  remove the environment, the caches of tools, and the demo
# Needs Python 3.11 to 3.13 with venv, and make. To choose a Python: make demo PYTHON=python3.12

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.PHONY: demo test test-core lint pytest chaos perf docs install develop clean

PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= all
DEVELOP ?= all,cluster,test,dev,docs
BIN := $(VENV)/bin
export HF_HUB_OFFLINE := 1

demo: install
	$(BIN)/stepline demo --mirror .stepline/demo --truth results/demo/truth.json
	STEPLINE_MIRROR=.stepline/demo $(BIN)/snakemake --cores 2 --configfile config.demo.yaml -- \
	    results/demo/table2.csv results/demo/report.html
	@echo "The table:  results/demo/table2.csv and results/demo/table2.md"
	@echo "The report: results/demo/report.html"

# The checks use one core, and the tests do not always use all cores.
test: develop
	$(MAKE) --jobs=2 lint pytest

lint: develop
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

# Three workers for two cores, because tests of clusters mostly wait. More than one thread per network would only add
# contention.
pytest: export OMP_NUM_THREADS := 1
# Hundreds of processes import the package. If Python may not write bytecode, each would compile it.
pytest: develop
	$(BIN)/python -m compileall -q src tests
	@$(FIND_LINKS_FOR_UV); \
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

SEED ?= 1
MINUTES ?= 30
chaos: export OMP_NUM_THREADS := 1
chaos: develop
	$(BIN)/python -m tests.chaos --seed $(SEED) --minutes $(MINUTES)

perf: develop
	$(BIN)/pytest -m long tests/perf

# Test the parts that work without torch, in a separate environment.
test-core:
	$(MAKE) pytest DEVELOP=media,asr,coin,s3,test \
	    VENV=build/core-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

install: $(VENV)/installed

develop: $(VENV)/developed

# uv does not read pip's settings, so pip's find-links are passed to it. pip separates them with spaces, uv with commas.
# In pip the environment variable takes precedence over the files.
define FIND_LINKS
import ast, sys
found = {}
for line in sys.stdin:
    key, _, value = line.partition("=")
    if key.endswith(".find-links"):
        found[key] = ast.literal_eval(value.strip()).split()
variable = found.get(":env:.find-links")
print(",".join(variable or dict.fromkeys(link for links in found.values() for link in links)))
endef
export FIND_LINKS
FIND_LINKS_FOR_UV := if [ -z "$${UV_FIND_LINKS+set}" ]; then \
    links=$$($(BIN)/python -m pip config list | $(BIN)/python -c "$$FIND_LINKS"); \
    if [ -n "$$links" ]; then export UV_FIND_LINKS="$$links"; fi; \
fi

$(VENV)/installed: WITH = $(EXTRAS)
$(VENV)/developed: WITH = $(DEVELOP)
$(VENV)/installed $(VENV)/developed: pyproject.toml constraints.txt | $(BIN)/uv
	@$(FIND_LINKS_FOR_UV); \
	echo "installing stepline[$(WITH)] into $(VENV)"; \
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --only-binary pocketsphinx \
	    --constraints constraints.txt --build-constraints constraints.txt --editable '.[$(WITH)]'
	@touch $(VENV)/installed $@

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' || \
	    { echo "Stepline needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is a different version: run make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt uv

clean:
	rm -rf .venv build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf .stepline/demo datasets/demo results/demo
