# The commands of the project. `make run` and `make test` need nothing installed but Python 3.11 or newer.
PYTHON ?= python3
VENV = .venv
BIN = $(VENV)/bin
ARGS ?=

# What a production site sets, with values that are good for nothing but being checked.
ANY_KEY = $$($(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(60))')
PRODUCTION = DEBUG=false ALLOWED_HOSTS=agentlab.example SECRET_KEY=$(ANY_KEY) \
	DATABASE_URL=sqlite:///:memory: AGENT_CAPTURE_REDIS_URL=redis://capture.example \
	AGENT_CAPTURE_SERVICE_KEY=$(ANY_KEY)

# The coding agent of `factory run --provider pi`: the newest version that Node.js 20 runs.
PI_VERSION = 0.73.1

.PHONY: help install pi run test browser pictures bench peers load lint format

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

$(VENV)/.installed: pyproject.toml constraints.txt
	@echo "Installing into $(VENV), which may take some minutes; the next time it is there."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,cluster,embed]'
	@touch $@

install: $(VENV)/.installed  ## virtual environment and dependencies, nothing else

node_modules/.pi-$(PI_VERSION):
	npm install --no-save --no-package-lock --no-audit --no-fund --ignore-scripts --omit=dev --loglevel=error \
		@mariozechner/pi-coding-agent@$(PI_VERSION)
	@touch $@

pi: node_modules/.pi-$(PI_VERSION)  ## the pi coding agent for the factory (needs Node.js 20 and npm)

run: install  ## a working site with live data, on this machine alone; ARGS="--port 0" and so on
	@exec $(BIN)/python manage.py up $(ARGS)

test: $(VENV)/.installed-dev  ## the suite on the embedded stores, or on DATABASE_URL and AGENT_CAPTURE_REDIS_URL
	@$(BIN)/pytest -n auto $(ARGS)

browser: $(VENV)/.installed-dev  ## the pages in a real Chromium (Debian's `chromium`)
	@$(BIN)/pytest -n auto -m browser $(ARGS)

pictures: $(VENV)/.installed-dev  ## every page, wide and narrow, light and dark, on sheets to look at (in pictures/)
	@$(BIN)/python -m tests.browser.pictures pictures $(ARGS)

bench: $(VENV)/.installed-dev  ## what things cost, as ratios measured in one run
	@$(BIN)/pytest -m bench -s $(ARGS)

peers: $(VENV)/.installed  ## what recording a turn costs beside other recorders, installed into a cache (20 minutes)
	@exec $(BIN)/python -m tests.bench.peers $(ARGS)

load: $(VENV)/.installed-dev  ## what a full database costs each page beside a small one (on DATABASE_URL if given)
	@$(BIN)/python -m tests.load $(ARGS)

lint: $(VENV)/.installed-dev  ## style, types, the walls between rooms, templates, settings, migrations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	SECRET_KEY=lint $(BIN)/mypy agentlab capture factory
	$(BIN)/lint-imports
	$(BIN)/python -m agentlab.hosted.outbound_check
	$(BIN)/djade --check --target-version 5.2 $$(git ls-files 'templates/*.html')
	$(PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING
	$(PRODUCTION) $(BIN)/python manage.py makemigrations --check --dry-run

format: $(VENV)/.installed-dev  ## put style right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/djade --target-version 5.2 $$(git ls-files 'templates/*.html')
