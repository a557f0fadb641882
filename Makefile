# The commands of this project. `make` alone prints them.
# Settings are environment variables LEASEHOLD_…; an optional file leasehold.env holds them too.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

ifneq (,$(wildcard leasehold.env))
include leasehold.env
export $(shell sed -n 's/^\(LEASEHOLD_[A-Z_]*\) *=.*/\1/p' leasehold.env)
endif

PYTHON := .venv/bin/python
CODE := $(wildcard libs services spark_streaming infra tests)

# Integration starts real Kafka, Redis and Spark; all other folders run in one process. Whatever is
# not named here counts as a unit suite, so that a new folder of tests is never left out.
INTEGRATION := $(wildcard tests/integration tests/consistency)
SIMULATION := $(wildcard tests/simulation)
MODELS := $(wildcard tests/models tests/schema_change)
# What of it there is for a Kafka and a Redis that ask everybody who he is.
SECURED := $(wildcard $(addprefix tests/integration/,cluster faults infra/test_infra.py kafka redis services spark))
MATRIX := $(wildcard tests/matrix)
ISOLATION := $(wildcard tests/isolation)
NO_SUITES := tests/bench tests/faults tests/soak tests/support tests/__pycache__
FOLDERS := $(patsubst %/,%,$(wildcard tests/*/))
UNIT := $(filter-out $(INTEGRATION) $(SIMULATION) $(MODELS) $(MATRIX) $(ISOLATION) $(NO_SUITES),$(FOLDERS))
# The matrix first: it copies its process for each case, which costs more the more this one holds.
IN_PROCESS := $(MATRIX) $(SIMULATION) $(MODELS) $(ISOLATION) $(UNIT)
# `make test` leaves out what is marked long, each with its reason; `make test-all` runs it, too.
MARKS ?= -m "not long"
# Without what this make tells those below it: tests run make, too.
PYTEST = env -u MAKEFLAGS -u MAKELEVEL $(PYTHON) -m pytest $(MARKS)
WORKERS ?= 2
# Some unit tests wait for a moment: one more than the cores keeps these busy. Files in order, since
# the long ones come first; xdist would keep those with few tests for the end.
UNIT_WORKERS ?= 3
# Tests on real parts wait for leases, elections and JVMs: two of them use half of two cores.
INTEGRATION_WORKERS ?= 3

# Each suite has workers that import the same files, and pytest rewrites hundreds of them: what
# Python makes of them is kept, whatever the shell says of that (`make clean` removes it).
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup tools demo quick quick-tests test checked-in-process in-process test-all feed-tools storage-tools observe-tools chart-tools chart browser faults soak check format unit sim isolation models matrix integration up down status bench lock sbom audit reference compose clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is missing: system packages (as root), .venv, jars, compiled code; quick when done
	@infra/setup.sh

tools: # the same for what starts no service: nothing is compiled
	@infra/setup.sh --without-build

# More than one of each: BROKERS=3 REDIS=sentinel.
MORE = $(if $(BROKERS),--brokers $(BROKERS)) $(if $(REDIS),--redis $(REDIS))

demo: setup ## run the main job end to end on real Kafka, Redis and Spark (about 4 minutes; SECURE=1; BROKERS=3 REDIS=sentinel; KEEP=1 leaves it up)
	@$(PYTHON) -m infra.demo $(if $(SECURE),--secure) $(if $(KEEP),--keep) $(MORE)

# Compiling takes one processor for a minute or two, and only integration needs what comes of it.
test: tools ## everything: lint, types, models, isolation, unit, simulation, matrix, integration; stops at the first failure
	@$(MAKE) -j2 setup checked-in-process
	@$(MAKE) integration

checked-in-process: # what starts no service, one after the other
	@$(MAKE) check
	@$(MAKE) in-process

# What of the unit tests takes longest: whole databases, tutorials, processes.
SLOWER := tests/unit/sql_session tests/unit/sql/queries tests/unit/documents tests/unit/infra
SLOWER += tests/unit/dev tests/unit/cli/test_exit_code.py

quick: tools ## lint, types, most unit tests and the simulation's stories, in about two minutes
	@$(MAKE) -j2 check quick-tests

quick-tests: # the same without lint and types
	@echo "== most unit tests, stories"
	@$(PYTEST) -n $(WORKERS) --dist loadfile $(UNIT) tests/simulation/test_stories.py \
	  $(SLOWER:%=--ignore=%) $(ARGS)

test-all: ## everything, what is marked long (more faults, pgbench), and integration in secure mode
	@$(MAKE) feed-tools chart-tools browser storage-tools observe-tools
	@$(MAKE) test MARKS=
	@$(MAKE) integration SECURE=1 MARKS=

feed-tools: setup ## fetch a schema registry and Kafka Connect, for the long tests of feeds
	@infra/feed_tools.sh

storage-tools: setup ## fetch HDFS, S3A (600 MB) and an S3 server, for the long tests of storage
	@infra/storage_tools.sh

observe-tools: setup ## fetch Prometheus; build Jaeger and a reader of boards with Go (some minutes); for tests
	@infra/observe_tools.sh

N ?= 20
faults: setup ## about N faults on real parts, each round judged (N=200 SEED=7; ARGS="--schedule FILE")
	@$(PYTHON) -m tests.faults --faults $(N) $(if $(SEED),--seed $(SEED)) $(ARGS)

MINUTES ?= 120
soak: setup ## hours of writers, readers, schema changes and restarts: what grows, what fails (MINUTES=120)
	@$(PYTHON) -m tests.soak --minutes $(MINUTES) $(ARGS)

browser: ## fetch Chromium, its driver and axe-core, for the long tests of the dashboard's pages
	@infra/browser.sh

check: tools ## lint, format, the order of packages, and strict types
	@echo "== lint, format, order of packages, types"
	@$(PYTHON) -m ruff check $(CODE)
	@$(PYTHON) -m ruff format --check $(CODE)
	@PYTHONPATH=libs:. .venv/bin/lint-imports --no-cache
	@$(PYTHON) -m mypy

format: tools ## let the formatter and the linter's safe fixes change the code
	@$(PYTHON) -m ruff check --fix $(CODE)
	@$(PYTHON) -m ruff format $(CODE)

# In one run no suite waits for the last test of the one before. The longest groups come first.
in-process: tools ## all tests that need no real Kafka, Redis or Spark, in one run
	@echo "== $(IN_PROCESS)"
	@$(PYTEST) -n $(UNIT_WORKERS) --dist loadfile --no-loadscope-reorder $(IN_PROCESS) $(ARGS)

unit: tools ## unit tests, in process (ARGS="-k name" narrows)
	@echo "== $(UNIT)"
	@$(PYTEST) -n $(UNIT_WORKERS) --dist loadfile --no-loadscope-reorder $(UNIT) $(ARGS)

sim: tools ## the whole system in one process under a seeded clock (SEED=n replays one run)
	@echo "== $(or $(SIMULATION),tests/simulation: no such folder)"
	@$(if $(SIMULATION),$(if $(SEED),LEASEHOLD_SEED=$(SEED) )$(PYTEST) $(if $(SEED),,-n $(WORKERS)) $(SIMULATION) $(ARGS),true)

isolation: tools ## what each level prevents: Hermitage, Comdb2's examples, list-append histories, stories; in process
	@echo "== $(ISOLATION)"
	@$(PYTEST) -n $(WORKERS) --dist loadfile $(ISOLATION) $(ARGS)

models: tools ## the explicit-state models over the real pure code, to their stated bounds
	@echo "== $(MODELS)"
	@$(PYTEST) -n $(WORKERS) --dist loadfile $(MODELS) $(ARGS)

matrix: tools ## each schema change, at each step: rows, people, crashes (all of it: python -m tests.matrix)
	@echo "== $(MATRIX)"
	@$(PYTEST) -n $(WORKERS) $(MATRIX) $(ARGS)

integration: setup ## tests on real Kafka, Redis and Spark, on free ports (SECURE=1: TLS, users, ACLs; BROKERS=3 REDIS=sentinel)
	@echo "== $(if $(SECURE),in secure mode: $(SECURED),$(INTEGRATION)) $(MORE)"
	@$(if $(SECURE),LEASEHOLD_TEST_SECURE=1 )$(if $(BROKERS),LEASEHOLD_TEST_BROKERS=$(BROKERS) )$(if $(REDIS),LEASEHOLD_TEST_REDIS=$(REDIS) )$(PYTEST) -n $(INTEGRATION_WORKERS) --dist loadfile --no-loadscope-reorder \
	  $(if $(SECURE),$(SECURED),$(INTEGRATION)) $(ARGS)

up: setup ## start the local cluster (no Docker): Kafka, Redis, every service (SECURE=1: TLS, users, ACLs; OBSERVE=1: metrics and a Prometheus; BROKERS=3 REDIS=sentinel: more than one of each)
	@$(PYTHON) -m infra.cluster up $(if $(SECURE),--secure) $(if $(OBSERVE),--observe) $(MORE)

down: ## end every process that `make up` started, also after a crash
	@[ ! -x $(PYTHON) ] || $(PYTHON) -m infra.cluster down

status: ## which processes of the local cluster run, and where
	@if [ -x $(PYTHON) ]; then $(PYTHON) -m infra.cluster status; \
	  else echo "nothing runs: this folder is not set up yet (make setup)"; fi

bench: setup ## print "metric value unit" lines, measured on real parts (ONLY=commit for one group)
	@$(PYTHON) -m tests.bench $(if $(ONLY),--only $(ONLY))

lock: ## write the locks anew: Python packages, tools, jars, and images where Docker can ask
	@infra/lock.sh

sbom: tools ## write what Leasehold is made of into .leasehold/leasehold.cdx.json (CycloneDX)
	@$(PYTHON) -m infra.sbom

audit: tools ## ask PyPI for known vulnerabilities of the locked packages (error 3: it can't be asked)
	@$(PYTHON) -m infra.audit "$$(infra/tools.sh)/pip-audit"

reference: tools ## write what the code knows into docs/reference, alerts and boards anew
	@$(PYTHON) -m infra.reference
	@$(PYTHON) -m infra.observe

compose: tools ## write docker-compose.yml anew from infra/deployment.py
	@$(PYTHON) -m infra.compose

chart-tools: tools # Helm, built with Go in some minutes, and the description of Kubernetes' API
	@infra/chart_tools.sh

chart: chart-tools ## check the Helm chart and render it anew (the first time some minutes: Helm is built)
	@$(PYTHON) -m infra.chart

clean: down ## end the local cluster and delete its data and all caches (.venv and jars stay)
	@rm -rf .leasehold/data .mypy_cache .pytest_cache .ruff_cache .hypothesis spark-warehouse
	@find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
