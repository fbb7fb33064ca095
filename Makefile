# Two commands from a fresh clone, with nothing but python3 and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

OUTSIDE := $(VENV)/outside

.PHONY: install demo serve test openapi faults check audit sbom web pictures charts vendored lock clean

install: $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# What looks at the service and its lock files from outside: schemathesis, pip-audit, cyclonedx-bom.
$(OUTSIDE)/.installed: requirements-outside.lock | $(VENV)/.installed
	$(PYTHON) -m venv $(OUTSIDE)
	$(OUTSIDE)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-outside.lock
	@touch $@

demo: install
	$(BIN)/howsure demo

serve: install
	$(BIN)/howsure serve

# As many tests at a time as there are processors: threads of numpy would wait for one another.
# Bytecode is kept whatever the environment says: each of hundreds of processes would compile anew.
test: install $(OUTSIDE)/.installed
	PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal

# The OpenAPI document, tried with many more made-up requests than `make test` sends.
EXAMPLES := 200
openapi: install $(OUTSIDE)/.installed
	OPENAPI_EXAMPLES=$(EXAMPLES) $(BIN)/pytest tests/openapi -s

# Hundreds of kills, outages and races: an hour or so. One of them: make faults FAULT=kill-server
FAULT := all
faults: install
	PYTHONPATH=tests/support:tests/faults OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fault_plan $(FAULT)

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Known vulnerabilities of what is locked; AUDIT=required where PyPI's list has to be asked.
audit: $(OUTSIDE)/.installed
	.ci/audit

# What is locked, as CycloneDX documents in dist/.
sbom: $(OUTSIDE)/.installed
	$(OUTSIDE)/bin/python .ci/sbom

# What tests/web needs beyond Python, with node and npm there: ONNX Runtime Web, and a browser.
web: examples/browser/node_modules tests/web/node_modules
	command -v chromium >/dev/null || .ci/install_chromium

# The README's pictures of pages, as the browser of the tests sees them.
PICTURES := build/pictures
pictures: install web
	mkdir -p $(PICTURES)
	HOWSURE_PICTURES=$(PICTURES) $(BIN)/pytest -q tests/web/pages/test_browser.py
	$(BIN)/python docs/keep_pictures.py $(PICTURES)

# Renews the scripts of the pages, with node and npm there: versions stand in vendor/package.json.
vendored:
	npm ci --ignore-scripts --prefix vendor
	$(PYTHON) vendor/pack.py

# Writes the specs of all charts anew: service/web/charts/specs.
charts: install
	$(BIN)/python -m service.web.charts.write_specs

%/node_modules: %/package.json %/package-lock.json
	npm ci --prefix $*
	@touch $@

# Renews requirements.lock (versions and hashes, no addresses), and with the same versions what an
# image for GPUs is made of.
COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
lock:
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/$(COMPILE) --group dev --extra tables --extra cluster -o requirements.lock pyproject.toml
	$(BIN)/$(COMPILE) --extra tables --extra cluster --extra cuda -c requirements.lock \
	  -o requirements-cuda.lock pyproject.toml
	$(BIN)/$(COMPILE) --group outside -o requirements-outside.lock

clean:
	rm -rf $(VENV) examples/browser/node_modules tests/web/node_modules build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
