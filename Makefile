# Everything happens in a virtual environment of its own; nothing outside of it is touched.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: help demo test golden check lint types contracts texts docs links man pictures wheel installs lock format bench cluster samples \
  fuzz fuzz-briefly fuzz-cost mutate-stores mutants sanitize compilers clean

help:
	@echo "make demo    install into $(VENV) and predict the sample profiles at p = 1024, beside the truth"
	@echo "make test    run the tests"
	@echo "make golden  write the golden outputs of tests/golden again, and show which of them change"
	@echo "make check   lint, types, import contracts, texts, documentation"
	@echo "make docs    the documentation site: build/docs/index.html"
	@echo "make links   follow the links of the site to other sites (needs a network)"
	@echo "make man     write docs/man, the man pages, from the texts of --help"
	@echo "make pictures  take the pictures of the documentation again (needs Chromium)"
	@echo "make wheel   sdist, wheel and bill of materials in dist/"
	@echo "make installs  install dist/ and the sources in all ways, in new environments, and try them"
	@echo "make lock    choose the newest versions of all libraries for tests and checks"
	@echo "make fuzz    fuzz the readers with Atheris: TIME=seconds of processor time each, TARGETS='otf2 store'"
	@echo "make fuzz-cost  search for inputs that cost too much: TIME=seconds of processor time each, TARGETS=..."
	@echo "make bench   speed and accuracy, side by side with peers (minutes)"
	@echo "make cluster run three programs on simulated clusters, for make bench (needs SimGrid; an hour)"
	@echo "make samples write the simulated sample profiles again, bit for bit (needs SimGrid 3.32)"
	@echo "make mutate-stores   read 5,000 changed stores (minutes)"
	@echo "make sanitize        drive the C library under sanitizers (minutes)"
	@echo "make compilers       compile the C library with GCC, Clang and Zig, and test each (minutes)"
	@echo "make mutants change some modules in each place, and see whether their own tests notice: MODULES=FILES"

demo: $(VENV)/installed
	$(BIN)/cpmodel rank sample_profiles/stencil --target 1024 --verify sample_profiles/stencil.p1024

# Tests start hundreds of processes, each of which takes longer without compiled bytecode.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/installed-dev
	$(BIN)/python -m compileall -q callpath_modeler plugins tests
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations 20

golden: $(VENV)/installed-dev
	CPMODEL_NEW_GOLDEN=1 $(BIN)/python -m pytest tests/golden
	git --no-pager diff --stat=120 -- tests/golden/expected
	git ls-files --others --exclude-standard tests/golden/expected

check: lint types contracts texts docs

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

contracts: $(VENV)/installed-dev
	$(BIN)/lint-imports --no-cache

texts: $(VENV)/installed-dev
	$(BIN)/python docs/scripts/check_texts.py

docs: $(VENV)/installed-dev
	$(BIN)/python docs/scripts/build_site.py

links: docs
	$(BIN)/sphinx-build -q -b linkcheck -c docs -d build/doctrees build/docs-source build/links

man: $(VENV)/installed
	$(BIN)/python docs/scripts/man_pages.py

pictures: $(VENV)/installed-dev
	$(BIN)/python docs/scripts/pictures.py

# The bill of materials lists what an installation holds in the versions that the tests use.
wheel: $(VENV)/installed-dev
	rm -rf dist build/materials
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv --without-pip build/materials
	sed -n 's/ *\\$$//p' $(LOCK) > build/materials/pins.txt
	$(BIN)/python -m pip --python build/materials/bin/python install --quiet --no-compile \
	  -c build/materials/pins.txt dist/*.whl
	$(BIN)/python -m cyclonedx_py environment --output-reproducible --pyproject pyproject.toml \
	  --mc-type application -o dist/callpath_modeler.cdx.json build/materials/bin/python

installs: wheel
	$(BIN)/python tests/tools/installations.py dist

lock: $(VENV)/installed-dev
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --extra dev --extra docs --extra release pyproject.toml -o $(LOCK)
	echo ziglang | $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate - -o $(ZIG)

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/installed-dev
	$(BIN)/python benchmarks/run.py

# These install nothing. The profiles are in build/cluster; a run that was stopped goes on.
cluster samples:
	@test -x $(BIN)/python || { echo "$(VENV) is not there: make demo creates it" >&2; exit 1; }
	cd benchmarks && $(abspath $(BIN))/python -m cluster.simulate $(if $(filter samples,$@),--samples)

# The corpus is kept and resumed; a crash leaves its input there, in TARGET/crashes.
FUZZ ?= $(CURDIR)/.fuzz
TIME ?= 60
fuzz: $(VENV)/installed-fuzz
	cd tests && $(abspath $(BIN))/python -m fuzz.run --corpus $(FUZZ) --time $(TIME) $(TARGETS)

# The same inputs each time; half a minute on two cores.
fuzz-briefly: $(VENV)/installed-fuzz
	rm -rf $(VENV)/fuzz-briefly
	cd tests && $(abspath $(BIN))/python -m fuzz.run --corpus $(abspath $(VENV))/fuzz-briefly \
	  --runs 150 --time 2 --seed 1 --jobs 2 --if-possible

# Needs no Atheris. The costliest inputs are kept, and the next call continues with them.
fuzz-cost: $(VENV)/installed-dev
	cd tests && $(abspath $(BIN))/python -m fuzz.cost --corpus $(FUZZ)-cost --time $(TIME) $(TARGETS)

mutate-stores: $(VENV)/installed-dev
	cd tests && ../$(BIN)/python mutated_stores.py 5000

compilers: $(VENV)/installed-dev
	-$(PIP) --upgrade --target build/zig --require-hashes -r $(ZIG)
	$(BIN)/python tests/tools/compilers.py build/zig

sanitize: $(VENV)/installed-dev
	cd tests && ../$(BIN)/python sanitized.py

mutants: $(VENV)/installed-dev
	$(BIN)/python tests/tools/mutants.py $(MODULES)

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
COMPILED := callpath_modeler/modeling/compiled
SOURCES := pyproject.toml $(COMPILED)/build.py $(wildcard $(COMPILED)/*.[ch]) $(wildcard $(COMPILED)/../constants/*.py)
define new-environment
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
  { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..." >&2; exit 1; }
$(PYTHON) -m venv $(VENV)
endef

$(VENV)/installed: $(SOURCES)
	$(new-environment)
	$(PIP) --editable .
	@touch $@

# Tests and checks use the versions of $(LOCK), whose files have known hashes. With PINNED= they use the
# newest versions that pyproject.toml allows: make test PINNED= VENV=build/newest
PINNED ?= yes
LOCK := .ci/requirements.txt
# A C compiler, for machines that have none.
ZIG := .ci/zig.txt
$(VENV)/installed-dev: $(SOURCES) $(LOCK)
	$(new-environment)
ifeq ($(PINNED),)
	$(PIP) --upgrade --editable '.[dev,docs,release]'
else
	$(PIP) --require-hashes -r $(LOCK)
	command -v $${CC:-cc} > /dev/null || $(PIP) --require-hashes -r $(ZIG)
	$(PIP) --no-deps --no-build-isolation --editable .
endif
	@touch $(VENV)/installed $@

# Where there is no wheel of it, fuzzing says so.
$(VENV)/installed-fuzz: $(VENV)/installed-dev
	-$(PIP) --only-binary atheris --editable '.[fuzz]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
