# Two commands from a fresh clone, with nothing but python3 and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install demo serve test faults check web lock clean

install: $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: install
	$(BIN)/howsure demo

serve: install
	$(BIN)/howsure serve

# As many tests at a time as there are processors: threads of numpy would wait for one another.
test: install
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal

# Hundreds of kills, outages and races: an hour or so. One of them: make faults FAULT=kill-server
FAULT := all
faults: install
	PYTHONPATH=tests/support:tests/faults OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fault_plan $(FAULT)

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# What tests/web needs beyond Python, with node and npm there: ONNX Runtime Web, and a browser.
web: examples/browser/node_modules tests/web/node_modules
	command -v chromium >/dev/null || .ci/install_chromium

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

clean:
	rm -rf $(VENV) examples/browser/node_modules tests/web/node_modules build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
