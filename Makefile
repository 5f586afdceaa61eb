# The commands of the project. `make run` and `make test` need nothing installed but Python 3.11 or newer.
PYTHON ?= python3
VENV = .venv
BIN = $(VENV)/bin
ARGS ?=

.PHONY: help install run test lint format

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,cluster,embed]'
	@touch $@

install: $(VENV)/.installed  ## virtual environment and dependencies, nothing else

run: install  ## a working site with live data, on this machine alone
	@$(BIN)/python manage.py up $(ARGS)

test: $(VENV)/.installed-dev  ## the whole suite on the embedded stores, or on DATABASE_URL and AGENT_CAPTURE_REDIS_URL
	@$(BIN)/pytest -n auto $(ARGS)

lint: $(VENV)/.installed-dev  ## style, types, the walls between rooms, templates
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	SECRET_KEY=lint $(BIN)/mypy agentlab capture factory
	$(BIN)/lint-imports
	$(BIN)/djade --check --target-version 5.2 $$(git ls-files 'templates/*.html')

format: $(VENV)/.installed-dev  ## put style right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/djade --target-version 5.2 $$(git ls-files 'templates/*.html')
