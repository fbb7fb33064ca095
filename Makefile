# Two commands from a fresh clone, with nothing but python3 and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install demo serve test check web lock clean

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

# Renews requirements.lock (versions and hashes, no addresses).
lock:
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
	  --group dev --extra tables --no-annotate -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) examples/browser/node_modules tests/web/node_modules build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
