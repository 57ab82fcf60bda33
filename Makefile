# The commands of this repository; `make` alone lists them. They work from any folder: make -C path/to/checkout run.
#   PORT=8000                where make run serves its pages
#   PYTHON=/path/to/python   which Python (3.12 to 3.14) .venv is made from
#   WITH=tests/pages         what make check runs besides
#   MINUTES=5 SEED=7         how long make chaos and make load run, and from which seed they draw
#   RACES=2000               how many pairs make races lets meet
#   VENV=folder              use an environment you made yourself and leave .venv alone

PORT ?= 8000
MINUTES ?= 5
RACES ?= 2000
VENV ?= .venv
BIN := $(VENV)/bin
# An environment of your own is used as it is; .venv is made and kept equal to the lock.
READY := $(if $(filter .venv,$(VENV)),environment)
export PYTHON
PYTEST := $(BIN)/python -m pytest
# For two cores: what starts processes waits more than it works, so more files run side by side than there are cores,
# each worker with services of its own.
FAST := -n 4 --dist worksteal -m "not browser and not faults"
KILLING := -n 3 --dist loadfile -m "faults and not browser"
BROWSING := -n 2 --dist loadfile -m browser
# The developer's loop is decisions and the tree: nothing that starts servers, and no installing. Name a folder besides.
LOOP := -n 3 --dist worksteal -m "not browser and not faults" tests/rules tests/repo --ignore=tests/repo/test_make.py
# These read the settings and need no database.
SETTINGS := OZ0_SECRET_KEY=unused DATABASE_URL=postgres://unused@127.0.0.1/unused

.DEFAULT_GOAL := help
.PHONY: help run test check fix rules states chaos load races rounds mutants screenshots bench-quick clean static browser environment

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(READY) ## Start the studio with its demo at PORT=8000; the first http:// address signs you in
	@exec $(BIN)/python -m studio.cli up --demo --port "$(PORT)"

test: $(READY) browser static ## Prove everything, with a real browser and killed processes
	@failed=; \
	$(PYTEST) $(FAST) || failed="$$failed fast"; \
	$(PYTEST) $(KILLING) || failed="$$failed killing"; \
	$(PYTEST) $(BROWSING) || failed="$$failed browser"; \
	if [ -n "$$failed" ]; then echo "make test: FAILED in:$$failed (each part's summary is above)"; exit 1; fi; \
	echo "make test: all passed"

check: $(READY) static ## The developer's loop, under a minute: types, decisions, the tree; WITH=tests/pages adds more
	$(PYTEST) -q $(LOOP) $(WITH)

fix: $(READY) ## Format the code and mend what can be mended by itself
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

rules: $(READY) ## List every rule of docs/rules.md with the tests that prove it
	@$(BIN)/python -m tests.repo.rules_report

states: $(READY) ## Draw docs/states.md from the tables of moves
	$(BIN)/python -m tests.repo.states_page

chaos: $(READY) ## Run the fault lab for MINUTES=5, drawn from SEED; the report is in chaos/
	@$(BIN)/python -m tests.faults.lab.chaos --minutes "$(MINUTES)" $(if $(SEED),--seed "$(SEED)")

load: $(READY) ## Hold 70 % of the peak for MINUTES=60 while a node is killed each minute; the report is in load/
	@$(BIN)/python -m tests.faults.lab.load $(if $(filter-out file default,$(origin MINUTES)),--minutes "$(MINUTES)") $(if $(SEED),--seed "$(SEED)")

races: $(READY) browser ## Let RACES=2000 pairs of people, cancels and policy changes meet at one question each; 10 minutes
	@RACES="$(RACES)" BROWSER_RACES=20 $(PYTEST) -q -s tests/operations/test_deciding_races.py \
		tests/faults/test_answered_without_workers.py tests/browser/test_answering_together.py

mutants: $(READY) ## Break the product on purpose, each time otherwise, and see every break caught
	@$(BIN)/python -m tests.faults.mutants

screenshots: $(READY) browser ## Take the pictures of README.md anew, of the demo in an empty folder
	$(BIN)/python -m tests.browser.pictures

clean: ## Remove what make made here: .venv, .oz0 with its database, caches
	@sh make/clean.sh

rounds: $(READY) ## Let 100 callers at a time spend what is left of a limit, 500 times; wants 10 minutes
	OZ0_ROUNDS=500 OZ0_EXAMPLES=150 $(BIN)/python -m pytest -q -s tests/budgets/test_counting.py

bench-quick: $(READY) .peers/.ready ## Measure the first figures beside their peers; wants a quiet machine for 4 minutes
	@$(BIN)/python -m benchmarks.quick 2>.peers/log || { tail -n 20 .peers/log; exit 1; }

.peers/.ready: benchmarks/peers/requirements.lock | $(READY)
	@echo "installing the programs that the figures are measured beside into .peers (once)"
	@$(BIN)/python -m venv --clear .peers
	@PIP_DISABLE_PIP_VERSION_CHECK=1 .peers/bin/python -m pip install -qq --require-hashes -r benchmarks/peers/requirements.lock
	@touch $@

static: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(SETTINGS) $(BIN)/mypy
	$(SETTINGS) $(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

browser: $(READY)
	@sh make/browser.sh $(BIN)/python

environment:
	@sh make/environment.sh
