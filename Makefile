# Each verb works from a bare clone with only python3 (and its venv module) present.
VENV   := .venv
PYTHON := $(VENV)/bin/python
DEMO   := $(VENV)/.demo
READY  := $(VENV)/.ready

.PHONY: demo test test-all check bench docs linkcheck dist clean

demo: $(DEMO)
	$(VENV)/bin/contextgap run bench --repetitions 10 --out out/demo/bench
	$(VENV)/bin/contextgap run digits --explore 700 --out out/demo/digits
	$(VENV)/bin/contextgap run spacecraft --out out/demo/spacecraft

# One BLAS thread per test process: two processes with two threads each get in each other's way.
# Compiled modules are kept, since many tests start a process of their own.
test test-all: export OPENBLAS_NUM_THREADS = 1
test test-all: export PYTHONDONTWRITEBYTECODE =
test: $(READY)
	$(PYTHON) -m pytest -n 2 --dist loadfile -m 'not slow'

# What is long and rarely breaks, too.
test-all: test
	$(PYTHON) -m pytest -n 2 --dist loadfile -m slow

check: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache

bench: $(READY)
	$(PYTHON) benchmarks/run.py

docs: $(READY)
	$(VENV)/bin/sphinx-build -W --keep-going -b html docs docs/_build/html

linkcheck: docs
	$(PYTHON) docs/check_links.py

# sdist and wheel, checked, and the demo run from the wheel in empty environments.
dist:
	bash .ci/dist

clean:
	rm -rf $(VENV) docs/_build dist out .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The demo needs little; what everything else needs is added to the same environment.
$(DEMO): EXTRAS := spacecraft
$(READY): EXTRAS := dev
$(DEMO) $(READY): pyproject.toml src/contextgap/__init__.py
	test -x $(PYTHON) || python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --editable '.[$(EXTRAS)]'
	touch $(DEMO) $@
