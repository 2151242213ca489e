PYTHON ?= python3
VENV   ?= .venv
PORT   ?= 8000
BIN    := $(VENV)/bin
SITE   := _build/html
LOG    := _build/log.txt

export HF_HUB_OFFLINE := 1

.PHONY: help book html notebooks assets test unit lint site-test pdf bench clean
.DEFAULT_GOAL := help

help:
	@echo "make book       make everything, serve the book on 127.0.0.1:$(PORT) and open it"
	@echo "make test       every check: code, laws, pages, the site in a browser"
	@echo "make notebooks  execute the pages that are stale (PAGE=radon: one, PAGE=all: all, CHECK=1: only report)"
	@echo "make pdf        the whole book as one PDF        make bench   the benchmarks"

book: html
	@$(BIN)/python tools/serve.py --port $(PORT) $(if $(NO_OPEN),--no-open)

$(VENV)/.ready: pyproject.toml constraints.txt tools/environment.py
	@$(PYTHON) tools/environment.py $(VENV)

_vendor/versions.txt: tools/site_assets.py | $(VENV)/.ready
	@$(BIN)/python tools/site_assets.py

assets: _vendor/versions.txt

# On a reader's machine a stale page is executed; in CI a page and its twin must already agree.
notebooks: $(VENV)/.ready
	@$(BIN)/python tools/notebooks.py $(PAGE) $(if $(CI)$(CHECK),--check)

html: notebooks assets
	@mkdir -p _build
	@$(BIN)/python tools/generated.py
	@$(BIN)/jupyter-book build . -W -n --keep-going --quiet >$(LOG) 2>&1 || { cat $(LOG); exit 1; }
	@cp tools/root.html $(SITE)/index.html

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint html
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

pdf: html
	@$(BIN)/python tools/pdf.py

bench: $(VENV)/.ready
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest benchmarks -o addopts= -o python_files='bench_*.py' -p no:xdist -s

clean:
	rm -rf _build book/_generated
