# `make demo` and `make test` work in a fresh clone and need only python3 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

OUTSIDE := $(VENV)/outside

.PHONY: install demo serve quick test test-slow test-all mutants openapi faults check audit sbom web pictures papers deploy-check lock clean

install: $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Tools that check the service and its lock files: schemathesis, pip-audit, cyclonedx-bom.
$(OUTSIDE)/.installed: requirements-outside.lock | $(VENV)/.installed
	$(PYTHON) -m venv $(OUTSIDE)
	$(OUTSIDE)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-outside.lock
	@touch $@

demo: install
	$(BIN)/howsure demo

serve: install
	$(BIN)/howsure serve

# One BLAS thread in each worker; more threads would compete. Bytecode is always cached: otherwise
# each of the hundreds of processes would compile again.
PYTEST := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 $(BIN)/pytest
# Four workers on two processors, because many tests wait for processes and clocks. A worker that
# is done takes tests from others; those of a file mostly stay together, with their fixtures.
WORKERS := -n $(shell echo $$(( 2 * $$(getconf _NPROCESSORS_ONLN) ))) --dist worksteal
LONG := --hypothesis-profile=long

# Tests that start no process and no service, in about a minute: for every save.
quick: install
	$(PYTEST) -n $(shell getconf _NPROCESSORS_ONLN) --dist worksteal --quick

# Tests each rule at least once. .ci/run adds slow tests, with SELECT, and checks, with CHECKS.
SELECT := not slow
CHECKS :=
test: install
	$(PYTEST) $(WORKERS) -m "$(SELECT)" $(CHECKS)

# The tests that `make test` omits: long forms, clusters, browsers, new examples of each property.
# `make test-all` runs everything, also further cases of tests that have quick ones.
test-slow: install $(OUTSIDE)/.installed
	$(PYTEST) $(WORKERS) $(LONG) -m "slow"

test-all: install $(OUTSIDE)/.installed
	$(PYTEST) $(WORKERS) $(LONG) -m ""

# Deliberate errors in the statistics: each must turn its tests red.
mutants: install
	PYTHONPATH=tests/mutants $(BIN)/python -m mutants

# Tests the OpenAPI document with many more generated requests than `make test-slow`.
EXAMPLES := 200
openapi: install $(OUTSIDE)/.installed
	OPENAPI_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -m slow tests/openapi -s

# Hundreds of kills, outages and races, in about an hour. To run one: make faults FAULT=kill-server
FAULT := all
faults: install
	PYTHONPATH=tests/support/services:tests/support/samples:tests/support/processes:tests/faults:benchmarks OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fault_plan $(FAULT)

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Checks locked packages for known vulnerabilities. AUDIT=required fails if PyPI's list does not respond.
audit: $(OUTSIDE)/.installed
	.ci/audit

# Writes the locked packages as CycloneDX documents to dist/.
sbom: $(OUTSIDE)/.installed
	$(OUTSIDE)/bin/python .ci/sbom

# Installs what tests/web needs besides Python: ONNX Runtime Web and a browser. Needs node and npm.
web: examples/browser/node_modules tests/web/node_modules
	command -v chromium >/dev/null || .ci/install_chromium

# Renews the README's pictures of pages with the browser of the tests.
PICTURES := build/pictures
pictures: install web
	mkdir -p $(PICTURES)
	HOWSURE_PICTURES=$(PICTURES) $(BIN)/pytest -q -m slow tests/web/pages/test_browser.py
	$(BIN)/python docs/keep_pictures.py $(PICTURES)

# Renews the tables of docs/papers.md with `howsure study` on the examples, in some minutes.
papers: install
	$(BIN)/python docs/make_papers.py

%/node_modules: %/package.json %/package-lock.json
	npm ci --prefix $*
	@touch $@

# Starts docker-compose.yml, and kills and restarts each container under load. Needs Docker or Podman.
deploy-check: install
	$(BIN)/python docker/deploy_check.py

# Renews requirements.lock (versions and hashes, no addresses), then with the same versions the lock files
# of the images for CPUs and GPUs, then requirements-outside.lock.
COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
lock:
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/$(COMPILE) --group dev --extra service --extra cluster -o requirements.lock pyproject.toml
	$(BIN)/$(COMPILE) --extra service --extra cluster -c requirements.lock \
	  --overrides docker/cpu-overrides.txt -o requirements-cpu.lock pyproject.toml
	$(BIN)/$(COMPILE) --extra service --extra cluster --extra cuda -c requirements.lock \
	  -o requirements-cuda.lock pyproject.toml
	$(BIN)/$(COMPILE) --group outside -o requirements-outside.lock

clean:
	rm -rf $(VENV) examples/browser/node_modules tests/web/node_modules build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
