SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test check format bench docs lock lint python testbed slurm containers

BIN := .venv/bin
PYTHON ?= python3
export PYTHON

help: ## Show these targets
	@sed -En 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: testbed ## Run pods for real and kill every part on the way (KEEP=1 leaves all running, DEMO_PODS=200 runs more)
	@PATH="$(CURDIR)/$(BIN):$$PATH" KEEP="$(KEEP)" DEMO_PODS="$(DEMO_PODS)" $(BIN)/python tools/demo/main.py

test: python lint testbed slurm containers ## Set everything up and run all tests (the first time takes about 10 minutes more)
	@$(BIN)/pytest

check: python lint ## Run what needs no server: format, lint, types, layers, unit tests (under 30 s)
	@$(BIN)/pytest -q -n 2 $(wildcard tests/unit tests/property)

format: python ## Format the code and fix what can be fixed
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

bench: testbed slurm ## Run the benchmarks
	@scripts/bench.sh

docs: python ## Build the documentation
	@$(BIN)/python tools/docs.py

lock: ## Resolve the locked requirements anew (needs uv; see requirements/README.md)
	@scripts/lock.sh

# What the targets above stand on.

lint:
	@scripts/lint.sh

python:
	@tools/setup.sh python

slurm:
	@tools/setup.sh slurm

containers:
	@tools/setup.sh containers apptainer-site

testbed:
	@tools/setup.sh python kubectl control-plane
