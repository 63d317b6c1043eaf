# `make` lists what there is. The only things needed: Python >= 3.11, make, git.
.DEFAULT_GOAL := help
PYTHONS := python3.13 python3.12 python3.11 python3.14 python3
PYTHON ?=
VENV := .venv/bin
# Everything runs from .venv; a stray virtual environment or PYTHONPATH of the caller's does not take part.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME
# Else each process that a test starts compiles the tree anew, and each worker every test: 0.4 s and 6 s of CPU.
unexport PYTHONDONTWRITEBYTECODE

bootstrap = python=$$(tools/find-python $(or $(PYTHON),$(PYTHONS))) && $$python -I tools/bootstrap.py

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Complete .venv for development, from locked packages
	@$(bootstrap) dev
	@$(VENV)/python tools/gen_proto.py --types

.PHONY: compile
compile: setup ## Compile the transport with mypyc: 1.4 to 1.8 times as many lookups (optional; needs a C compiler)
	@$(VENV)/python -m tools.compile

# Another line is built as its newest release is, in a folder of its own: only the default is pinned.
.PHONY: etcd
etcd: ## Build a current etcd for `hq dev` and the tests into .venv (needs Go; LINE=3.7: the newest 3.7, for make faults and test-long)
	@command -v go >/dev/null || { echo "make etcd: there is no go on PATH: install Go (https://go.dev/dl) and try again," \
		"or put etcd 3.6.5 or newer on PATH (https://github.com/etcd-io/etcd/releases): it is used, too"; exit 1; }
	@$(bootstrap) run
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && out=$$PWD/$(VENV)/hq-etcd$(if $(LINE),-$(LINE)) && \
		cp distributions/hq-etcd/*.go $(if $(LINE),,distributions/hq-etcd/go.*) $$folder && cd $$folder && \
		$(if $(LINE),go mod init hq-etcd && go get go.etcd.io/etcd/server/v3@v$(LINE) &&) \
		CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w' -o $$out . && $$out --version

.PHONY: run
run: ## Start an HQ with its own etcd, and the console, on this machine (RECORDER=1: a recorder, too; Ctrl-C stops them)
	@$(bootstrap) run
	@exec $(VENV)/python -m tools.run $(if $(RECORDER),--recorder)

.PHONY: cloud
cloud: ## Three locations, CMS, Nanny, Wall-E, console and gateways over simulated instances (TROUBLE=1: broken; Ctrl-C stops it)
	@$(bootstrap) run
	@exec $(VENV)/python -m tools.cloud $(if $(TROUBLE),--trouble)

.PHONY: machines
machines: setup ## A shell with three machines of HQ and a node beside it, played on this one: to try docs/production.md (as root)
	@$(VENV)/python -m tests.support.played_shell

# Three on two cores: the tests wait as much as they compute.
.PHONY: test
test: setup ## Run the tests (except the long ones)
	@$(VENV)/pytest -n 3 --dist worksteal

.PHONY: test-long
test-long: setup ## Run the long tests: foreign clients, several etcds, outages, browsers (NIGHT=1: those of hours)
	@$(VENV)/python -m tests.judges --install
	@$(VENV)/pytest -m "$(if $(NIGHT),night,(long or hypothesis) and not night)" --hypothesis-profile=thorough --timeout=600 -n 4 --dist worksteal $(ARGS)

.PHONY: fuzz
fuzz: setup ## Attack replicas, with security and without, for DURATION (10m) in all: random, malformed requests
	@$(VENV)/python -m tests.fuzz --duration $(or $(DURATION),10m) $(if $(SEED),--seed $(SEED))

.PHONY: check
check: setup ## Format, lint, strict types, import contracts, generated code, proto lint and compatibility, packages
	$(VENV)/ruff format --check .
	$(VENV)/ruff check .
	$(VENV)/mypy
	$(VENV)/lint-imports --no-cache --no-logo
	$(VENV)/python tools/gen_proto.py --check
	$(VENV)/python -m tools.gen_sync_client --check
	$(VENV)/python -m tools.gen_api_reference --check
	$(VENV)/python -m tools.gen_metrics_reference --check
	$(VENV)/python -m tools.gen_cms_states --check
	$(VENV)/python -m tools.gen_nanny_states --check
	$(VENV)/buf lint
	$(VENV)/python -m tools.check_compatible
	$(VENV)/bandit -q -c pyproject.toml -r store serving control cms hqapi hq federated walle gateways console nanny recorder clients tools
	$(VENV)/python -m tools.check_advisories
	$(VENV)/python -m tools.check_packages

.PHONY: format
format: setup ## Format the code and fix what the linter can fix
	$(VENV)/ruff format .
	$(VENV)/ruff check --fix .

.PHONY: matrix
matrix: setup ## Call every method of every server as every caller, and write docs/security-matrix.txt anew
	@$(VENV)/python -m tests.support.authority.matrix

.PHONY: proto
proto: setup ## Generate the Python code of proto/ and docs/{api,metrics}.md anew
	$(VENV)/python tools/gen_proto.py
	$(VENV)/python -m tools.gen_sync_client
	$(VENV)/python -m tools.gen_api_reference
	$(VENV)/python -m tools.gen_metrics_reference
	$(VENV)/python -m tools.gen_nanny_states
	$(VENV)/python -m tools.gen_cms_states

.PHONY: protos
protos: ## Copy the public .proto files, to generate a client from (OUT=DIR; default dist/protos)
	@$(bootstrap) run
	@$(VENV)/python -m tools.public_protos $(or $(OUT),dist/protos)

.PHONY: lock
lock: setup ## Lock requirements/*.in with hashes (make lock UPGRADE=--upgrade takes newer versions)
	$(VENV)/python tools/lock.py $(UPGRADE)

.PHONY: release
release: setup ## Wheels, sdists, SBOM, changes and checksums of this commit, in dist/release (OUT=DIR)
	@$(VENV)/python -m tools.release $(or $(OUT),dist/release)

.PHONY: judges
judges: setup ## Foreign clients and suites judge the transport (ONLY=h2spec: one); tools go to ~/.cache/hq-judges
	@$(VENV)/python -m tests.judges --install
	@$(VENV)/python -m tests.judges $(if $(ONLY),--only $(ONLY))

.PHONY: faults
faults: setup ## Real processes under faults, and a checker (make faults DURATION=10m SEED=7 ETCD=3.4; OUT=DIR; OF=cms, nanny, walle, control)
	@PYTHONPATH=.:proto:clients $(VENV)/python -m tests.rig $(or $(OF),faults) $(if $(DURATION),--duration $(DURATION)) \
		$(if $(SEED),--seed $(SEED)) $(if $(ETCD),--etcd $(ETCD)) $(if $(OUT),--out $(OUT)) \
		$(if $(NAMESPACES),--namespaces) $(if $(TLS),--tls) $(if $(BUG),--bug $(BUG))

.PHONY: bench
bench: compile ## HQ, an empty handler and raw etcd side by side (QUICK=1: 3 minutes; CASES=lookups,heartbeats; OUT=file.json)
	@PYTHONPATH=.:proto:clients $(VENV)/python -m tests.bench run $(if $(OUT),--out $(OUT))
