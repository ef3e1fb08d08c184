# Each command does all of its own set-up: they need python3 (3.11 or newer), pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q install -c requirements.lock
# Files side by side, the longest first (tests/longest.py).
SIDE_BY_SIDE := -n auto --dist loadfile --no-loadscope-reorder

.PHONY: demo test check lint docs ptx faults networkx clean

demo: $(VENV)/demo.stamp
	$(BIN)/isthmus demo

test: $(VENV)/test.stamp
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m 'not alone'
	$(BIN)/python -m pytest -m alone

check: $(VENV)/test.stamp lint
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --quick -m 'not alone'

lint: $(VENV)/test.stamp
	$(BIN)/ruff format --check -q src tests benchmarks examples docs
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/mypy

# The documentation as a site in site/, which opens without a network: site/index.html. A dead link is an error.
docs: $(VENV)/docs.stamp
	rm -rf site
	$(BIN)/python -m sphinx -b html -W --keep-going -q -c docs/builder -d $(VENV)/doctrees . site
	$(BIN)/python docs/builder/links.py site

# NetworkX's own tests on the backend, with counts: about 40 minutes.
networkx: $(VENV)/test.stamp
	$(BIN)/python -m tests.networkx.suite

# Every kernel for NVIDIA GPUs as PTX and cubin, without a GPU.
ptx: $(VENV)/test.stamp
	$(BIN)/python -m tests.ptx

# The long campaigns of docs/reliability.md: hours.
faults: $(VENV)/test.stamp
	$(BIN)/python tests/faults/damage.py --stores 2000
	$(BIN)/python -m tests.faults.checkpoints --forged 2000
	$(BIN)/python -m tests.faults.streams --stores 1000
	$(BIN)/python -m tests.faults.first_use
	$(BIN)/python -m tests.faults.writing --points 500
	$(BIN)/python -m tests.faults.log --points 2000
	if command -v strace > /dev/null; then $(BIN)/python -m tests.faults.writing --system && $(BIN)/python -m tests.faults.log --system; fi
	$(BIN)/python -m tests.faults.bits
	if [ "$$(id -u)" = 0 ]; then $(BIN)/python -m tests.faults.full; fi
	$(BIN)/python -m tests.faults.memory --runs 60

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Isthmus needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m pip install -q --target $(VENV).tool virtualenv && PYTHONPATH=$(VENV).tool $(PYTHON) -m virtualenv -q $(VENV); }

$(VENV)/build.stamp: $(BIN)/python build-tools.in requirements.lock
	$(PIP) -r build-tools.in
	@touch $@

$(VENV)/demo.stamp: $(VENV)/build.stamp pyproject.toml
	$(PIP) --no-build-isolation -e .
	@touch $@

$(VENV)/test.stamp: $(VENV)/build.stamp pyproject.toml
	$(PIP) --no-build-isolation -e '.[test,lint]'
	@touch $@ $(VENV)/demo.stamp

$(VENV)/docs.stamp: $(VENV)/build.stamp pyproject.toml
	$(PIP) --no-build-isolation -e '.[docs]'
	@touch $@ $(VENV)/demo.stamp

clean:
	rm -rf $(VENV) $(VENV).tool site docs/reference .demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
