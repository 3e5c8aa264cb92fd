# Everything goes into .venv; the only needs are Python 3.11 or newer, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SNAKEMAKE := .venv-snakemake
PLUGIN := integrations/snakemake-scheduler-plugin-headrace
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal
# COVERAGE=1 measures which lines the tests reach; `make coverage` reports it.
COVER = $(if $(COVERAGE),--cov --cov-report= --cov-fail-under=0)

.PHONY: demo test test-slow test-all lint warmup coverage bench docs package package-test page page-test browser ssh snakemake clean

demo: warmup
	$(BIN)/headrace demo

# What a change should pass before it is committed: at most 8 minutes on two cores.
test: lint warmup
	$(PYTEST) -m "not slow" $(COVER)

# The tests marked `slow`, without those of `test`.
test-slow: $(VENV)/dev warmup
	$(PYTEST) -m slow $(COVER) $(if $(COVERAGE),--cov-append)

# Everything: at most 30 minutes on two cores.
test-all: test test-slow

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Compiles what is not compiled yet; compiled code is kept for all clones and installations of the same source.
warmup: $(VENV)/installed
	$(BIN)/headrace warmup

coverage: $(VENV)/dev
	$(BIN)/coverage report --skip-covered

bench: $(VENV)/dev warmup
	$(BIN)/python -m bench

# The documentation as a site in site/; a warning is an error. Once installed, it needs no network.
docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The wheel and the source archive in dist/.
package: $(VENV)/dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

# Installs each of them into an empty environment and tries it there.
package-test: package
	$(PYTHON) tests/packaging/try_package.py dist

# Builds the page and the script of reports from page/ into the package; needs Node 20. Their results are committed.
page: page/node_modules
	cd page && npx tsc --noEmit && npx vite build && npx vite build -c vite.report.config.ts
	$(PYTHON) page/digest.py --write

page-test: page/node_modules
	cd page && npx tsc --noEmit && npx vitest run

# What the browser tests need: the system's Chromium (root only), otherwise a copy of the user's own. Where neither can be
# installed, these tests are skipped.
browser: $(VENV)/dev
	-command -v chromium >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y chromium; }
	-command -v chromium >/dev/null || PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT=10000 $(BIN)/playwright install chromium
	-command -v npm >/dev/null && $(MAKE) page/node_modules

# What tests of workers on other machines need: an OpenSSH server (root only); they are skipped without it.
ssh:
	-command -v /usr/sbin/sshd >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y openssh-server openssh-client; }

# Snakemake with Headrace's scheduler plugin, in an environment of its own; its tests are skipped without it.
snakemake: $(SNAKEMAKE)/installed

$(SNAKEMAKE)/installed: pyproject.toml $(PLUGIN)/pyproject.toml
	$(PYTHON) -m venv $(SNAKEMAKE)
	$(SNAKEMAKE)/bin/python -m pip install --quiet --disable-pip-version-check "snakemake>=9,<10" --editable . --editable $(PLUGIN)
	touch $@

page/node_modules: page/package-lock.json
	cd page && npm install --no-save --no-audit --no-fund
	touch $@

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Headrace needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(VENV)/dev: $(VENV)/installed
	$(PIP) --upgrade "pip>=25.1"
	$(PIP) --group dev
	touch $@

$(VENV)/docs: $(VENV)/dev
	$(PIP) --group docs
	touch $@

clean:
	rm -rf $(VENV) $(SNAKEMAKE) dist site .pytest_cache .mypy_cache .ruff_cache .coverage
