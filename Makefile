# The commands of this repository; `make` alone lists them.
#   PYTHON=/path/to/python   which Python (3.12 to 3.14) .venv is made from
#   VENV=folder              use an environment you made yourself and leave .venv alone

VENV ?= .venv
BIN := $(VENV)/bin
# An environment of your own is used as it is; .venv is made and kept equal to the lock.
READY := $(if $(filter .venv,$(VENV)),.venv/.ready)
# What a machine's own pip settings may say must not change what the lock installs.
PIP_ENV := PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_REQUIRE_VIRTUALENV=0 PIP_USER=0 PIP_CONSTRAINT=/dev/null PIP_NO_INPUT=1
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable
PYTEST := $(BIN)/python -m pytest
# For two cores: what starts processes waits more than it works, so more files run side by side than there are cores,
# each worker with services of its own.
FAST := -n 4 --dist worksteal -m "not browser and not faults"
KILLING := -n 3 --dist loadfile -m "faults and not browser"
BROWSING := -n 2 --dist loadfile -m browser
# The developer's loop leaves out what starts servers: nodes, tools, commands, examples.
LOOP := -n 3 --dist worksteal -m "not browser and not faults" tests/rules tests/repo tests/operations tests/pages
# These read the settings and need no database.
SETTINGS := OZ0_SECRET_KEY=unused DATABASE_URL=postgres://unused@127.0.0.1/unused

.DEFAULT_GOAL := help
.PHONY: help run test check fix rules states static browser

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(READY) ## Start the studio with its demo; the first line with http:// signs you in
	$(BIN)/oz0 up --demo

test: $(READY) browser static ## Prove everything, with a real browser and killed processes
	@failed=; \
	$(PYTEST) $(FAST) || failed="$$failed fast"; \
	$(PYTEST) $(KILLING) || failed="$$failed killing"; \
	$(PYTEST) $(BROWSING) || failed="$$failed browser"; \
	if [ -n "$$failed" ]; then echo "make test: FAILED in:$$failed (each part's summary is above)"; exit 1; fi; \
	echo "make test: all passed"

check: $(READY) static ## The developer's loop: all that starts no server, no browser and kills nothing
	$(PYTEST) -q $(LOOP)

fix: $(READY) ## Format the code and mend what can be mended by itself
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

rules: $(READY) ## List every rule of docs/rules.md with the tests that prove it
	@$(BIN)/python -m tests.repo.rules_report

states: $(READY) ## Draw docs/states.md from the tables of moves
	$(BIN)/python -m tests.repo.states_page

static: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(SETTINGS) $(BIN)/mypy
	$(SETTINGS) $(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

browser:
	@for name in $(BROWSERS); do command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "no Chromium on the path: installing Debian's"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	else \
		echo "make test needs a browser: install chromium or google-chrome and run it again" >&2; exit 1; \
	fi

.venv/.ready: requirements.lock pyproject.toml
	@set -e; \
	fits() { "$$1" -c 'import ensurepip, sys, venv; sys.exit(not (3, 12) <= sys.version_info[:2] <= (3, 14))' >/dev/null 2>&1; }; \
	found=; \
	for python in $(or $(PYTHON),python3.13 python3.14 python3.12 "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.1[342].*/bin/python3 python3); do \
		if fits "$$python"; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "oz0 studio needs Python 3.12, 3.13 or 3.14 with its venv module$(if $(PYTHON), and $(PYTHON) is not one): install one, or say make PYTHON=/path/to/python" >&2; exit 1; \
	fi; \
	fits .venv/bin/python || { echo "making .venv with $$found"; "$$found" -m venv --clear .venv; }; \
	echo "installing requirements.lock into .venv"; \
	$(PIP_ENV) .venv/bin/python -m pip install -qq --require-hashes -r requirements.lock; \
	$(PIP_ENV) .venv/bin/python -m pip install -qq --no-deps --no-build-isolation -e .; \
	touch $@
