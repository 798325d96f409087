# make serve   set up what is missing and serve on 127.0.0.1:8000
# make test    set up what is missing and run all of the tests
# make check   formatter, linter, types, import contracts
# make bench   ranks from a parked slot against torchrun

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml static/package.json static/package-lock.json static/build_hook.py \
  $(wildcard static/js/*.js static/css/*.css)
BROWSER_PACKAGES := chromium fonts-noto-cjk

.PHONY: serve test check bench clean browser

$(VENV)/.installed: $(SOURCES)
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed") if sys.version_info < (3, 11) else 0'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV); PyTorch is large, so the first time takes a minute or more"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-test: $(SOURCES)
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed") if sys.version_info < (3, 11) else 0'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV), with what the tests need"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $(VENV)/.installed $@

serve: $(VENV)/.installed
	exec $(BIN)/academy serve

test: $(VENV)/.installed-test browser
	$(BIN)/python -m pytest

check: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed
	$(BIN)/academy bench start

# Browser tests need a Chromium and a Japanese font; only root can install them here.
browser:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  ! { command -v chromium || command -v google-chrome; } >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(BROWSER_PACKAGES); \
	fi

clean:
	rm -rf $(VENV) static/vendor static/node_modules build dist
