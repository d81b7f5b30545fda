# What can be done here: `make help`. `make synth` and `make test` set up what they need; the only
# prerequisites are GNU make and Python 3.11 or newer. Arguments go through: make test ARGS="-k budget".

PYTHON ?= python3
export PLATFORM ?= platform.yaml
ARGS ?=

PY := .venv/bin/python
# jsii (the Node side of the CDK) runs on the pinned Node, whatever else is installed.
export JSII_NODE := $(CURDIR)/.venv/bin/node
# Trust the certificate authorities of the system, as pip does: needed behind a company proxy.
export NODE_USE_SYSTEM_CA ?= 1
# Reading the CDK's modules from source takes as long as a whole synth.
unexport PYTHONDONTWRITEBYTECODE
NODE_FIRST := PATH="$(CURDIR)/.venv/bin:$$PATH"
FINOPS := $(PY) -m genai_finops
CDK := $(NODE_FIRST) node_modules/.bin/cdk
UV_PINS := .venv/bin/uv pip compile --quiet --generate-hashes --only-binary :all: --system-certs --no-emit-index-url \
	--custom-compile-command "make lock"
UV_COMPILE := $(UV_PINS) --universal --python-version 3.11
# For the functions: Python 3.13 on arm64, without boto3 and what it needs, which are in Lambda's own runtime.
UV_COMPILE_LAMBDAS := $(UV_PINS) --python-version 3.13 --python-platform aarch64-manylinux2014 \
	$(addprefix --no-emit-package ,botocore jmespath python-dateutil six urllib3)
TYPED := $(wildcard genai_finops k8s_charts stacks lambdas app.py)

RUNTIME := .venv/.runtime.stamp
PLANNER := .venv/.planner.stamp
LAMBDAS := .venv/.lambdas.stamp
DEV := .venv/.dev.stamp
NODE := node_modules/.stamp

.DEFAULT_GOAL := help
# One thing after the other: several targets may set up the same folder.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help synth plan simulate compare evidence report test e2e snapshots lint format types check schema bench cdk diff deploy destroy hold artifacts stage compile lock clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' Makefile

## the platform

synth: $(RUNTIME) $(LAMBDAS) ## plan and synthesize platform.yaml into cdk.out (another file: PLATFORM=other.yaml)
	@$(PY) app.py

diff: synth $(NODE) ## synthesize, then compare with what is deployed
	$(CDK) diff --app cdk.out $(ARGS)

deploy: synth $(NODE) ## synthesize, then deploy all stacks
	$(CDK) deploy --all --app cdk.out --concurrency 4 $(ARGS)

destroy: synth $(NODE) ## synthesize, then destroy all stacks
	$(CDK) destroy --all --app cdk.out $(ARGS)

cdk: $(RUNTIME) $(LAMBDAS) $(NODE) ## any other CDK command: make cdk ARGS="bootstrap"
	$(CDK) $(ARGS)

hold: $(DEV) ## keep a model awake: make hold MODEL=llama3-8b UNTIL=8h (or STATE=asleep, or ARGS=--release)
	@$(PY) -m genai_finops.spec.automation $(PLATFORM) | $(PY) -m lambdas.hold $(MODEL) $(UNTIL) \
		$(if $(filter asleep,$(STATE)),--asleep) $(ARGS)

artifacts: $(DEV) ## what the model store has of each model: size, age, and what no model asks for
	@$(FINOPS) artifacts $(PLATFORM)

stage: synth ## bring a model's weights into the store, and wait: make stage MODEL=llama3-8b
	@$(PY) -m genai_finops.supply.jobs stage $(MODEL)

compile: synth ## compile a model's graphs into the store, and wait: make compile MODEL=llama3-8b
	@$(PY) -m genai_finops.supply.jobs compile $(MODEL)

## what it would cost

TRAFFIC ?=
plan: $(PLANNER) ## the cheapest configuration that meets the objective: make plan TRAFFIC=trace.csv
	@$(FINOPS) plan $(PLATFORM) $(if $(TRAFFIC),--traffic $(TRAFFIC)) $(ARGS)

simulate: $(PLANNER) ## what would happen hour by hour: make simulate TRAFFIC=trace.csv
	@$(FINOPS) simulate $(PLATFORM) $(if $(TRAFFIC),--traffic $(TRAFFIC)) $(ARGS)

compare: $(RUNTIME) ## cost per million tokens of each alternative
	@$(FINOPS) compare $(ARGS)

evidence: $(RUNTIME) ## the planner's performance model against every published measurement
	@$(PY) -m genai_finops.planner.performance.evidence

report: $(PLANNER) ## one HTML page with charts: make report TRAFFIC=trace.csv
	@$(FINOPS) report $(PLATFORM) $(if $(TRAFFIC),--traffic $(TRAFFIC)) --out-file dist/report.html $(ARGS)

## the code

test: $(DEV) $(LAMBDAS) $(NODE) ## run the tests
	$(PY) -m pytest -n auto --dist loadfile $(ARGS)

e2e: $(DEV) $(LAMBDAS) $(NODE) ## run the end-to-end tests on real controllers, which Go builds
	$(PY) -m pytest -m e2e tests/e2e $(ARGS)

snapshots: $(DEV) $(LAMBDAS) $(NODE) ## run the tests and accept what they synthesize as the new snapshots
	$(PY) -m pytest --snapshot-update $(ARGS)

lint: $(DEV) ## ruff: rules and formatting
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

format: $(DEV) ## ruff: repair what can be repaired, and format
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

types: $(DEV) ## mypy, strict
	$(PY) -m mypy $(TYPED)

check: lint types test ## lint, types and test

schema: $(DEV) ## write the JSON schemas of the platform file and of the planner's answers
	$(PY) -m genai_finops.spec.schema
	$(PY) -m genai_finops.planner.present.schema

bench: $(RUNTIME) $(LAMBDAS) ## time and memory of a synth, against a bare CDK app and for 1, 10 and 100 models
	$(PY) benchmarks/synth.py $(ARGS)

## the set-up

lock: .venv/.lock.stamp $(RUNTIME) ## renew the locks from pyproject.toml and package.json (newer pins: ARGS=--upgrade)
	$(UV_COMPILE) --group lock --output-file requirements/lock.txt $(ARGS)
	$(UV_COMPILE) pyproject.toml --extra planner --extra rehearsal --group dev --output-file requirements/dev.txt $(ARGS)
	$(UV_COMPILE) pyproject.toml --constraint requirements/dev.txt --output-file requirements/runtime.txt
	$(UV_COMPILE) pyproject.toml --extra planner --constraint requirements/dev.txt \
		--output-file requirements/planner.txt
	$(UV_COMPILE_LAMBDAS) --group lambdas --constraint requirements/dev.txt --output-file requirements/lambdas.txt
	$(NODE_FIRST) npm install --package-lock-only --ignore-scripts --no-audit --no-fund
	$(PY) tools/clean_npm_lock.py
	@! grep -n '://' requirements/*.txt package-lock.json

clean: ## remove what was made: outputs and caches
	rm -rf cdk.out .cdk.out-* dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . \( -path ./.venv -o -path ./node_modules -o -path ./.git \) -prune -o -name __pycache__ -exec rm -rf {} +

distclean: clean ## remove the set-up as well
	rm -rf .venv node_modules

$(RUNTIME): requirements/runtime.txt tools/setup_env.py $(PY)
	@$(PYTHON) tools/setup_env.py runtime

$(PLANNER): requirements/planner.txt tools/setup_env.py $(PY)
	@$(PYTHON) tools/setup_env.py planner

$(LAMBDAS): requirements/lambdas.txt tools/setup_env.py | $(RUNTIME)
	@$(PYTHON) tools/setup_env.py lambdas

$(DEV): requirements/dev.txt tools/setup_env.py $(PY)
	@$(PYTHON) tools/setup_env.py dev

.venv/.lock.stamp: requirements/lock.txt tools/setup_env.py $(PY)
	@$(PYTHON) tools/setup_env.py lock

$(NODE): package-lock.json tools/setup_env.py | $(RUNTIME)
	@$(PYTHON) tools/setup_env.py node

# A .venv whose Python is gone counts as changed, and setup_env.py makes a new one.
$(PY):
