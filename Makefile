# `make help` lists the targets. Needed: Go and the Go module proxy. The tests also
# need git, gcc (the race detector) and Chromium (the web pages): `make test` installs
# what is missing, or says how. A first build compiles Kubernetes: about ten minutes
# on two cores; later ones take seconds.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

# One set of flags for everything, or Kubernetes is compiled once per set. Only
# the race detector needs cgo. No -trimpath.
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out -buildvcs=%,$(GOFLAGS)) -buildvcs=false

# The version of Kubernetes in the binaries decides about feature gates and is
# what the API server reports; ours is printed by --version.
KUBE_VERSION := $(shell awk '$$1 == "k8s.io/kubernetes" {print $$2; exit}' go.mod)
KUBE_PARTS := $(subst ., ,$(KUBE_VERSION:v%=%))
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# The day of the commit, so that the same source gives the same bytes.
DATE ?= $(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%d 2>/dev/null || echo unknown)
STAMP := k8s.io/component-base/version
# What REST says of the build, at /ws/v1/clusters, and --version.
REST := github.com/paddock-scheduler/paddock/pkg/rest/documents
export PADDOCK_LDFLAGS := \
	-X $(STAMP).gitVersion=$(KUBE_VERSION) \
	-X $(STAMP).gitMajor=$(word 1,$(KUBE_PARTS)) \
	-X $(STAMP).gitMinor=$(word 2,$(KUBE_PARTS)) \
	-X $(STAMP).gitCommit=$(COMMIT) \
	-X $(REST).BuildVersion=$(VERSION) \
	-X $(REST).BuildCommit=$(COMMIT) \
	-X $(REST).BuildDate=$(DATE)

INTEGRATION := ./test/integration/...
# Expanded when used: it asks the go command.
RACE_PACKAGES = $$(hack/test-packages.sh race)
PLAIN_PACKAGES = $$(hack/test-packages.sh plain)

GO_BUILD = go build -ldflags "$$PADDOCK_LDFLAGS"
LINTER := bin/tools/golangci-lint
# The chart, the kustomizations and the image: a module of its own.
RELEASE := tools/release

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' Makefile

.PHONY: build
build: ## Build bin/scheduler and bin/kubectl-paddock.
	$(GO_BUILD) -o bin/ ./cmd/scheduler ./cmd/kubectl-paddock

.PHONY: binaries
binaries: ## Build all of bin/ that tests and the local cluster start: PROGRAMS= chooses.
	@$(GO_BUILD) -o bin/ $(or $(PROGRAMS),./cmd/...)

# make run uses an existing cluster only if the command line of make names it: the KUBECONFIG of a
# shell is often that of a cluster in production.
ifneq ($(origin KUBECONFIG),command line)
override KUBECONFIG :=
endif

# A cluster that exists and is not the one in DIR, which make run starts anew.
EXISTING := $(filter-out $(abspath $(or $(DIR),.cluster))/%,$(abspath $(KUBECONFIG)))

.PHONY: run
run: ## Run a local cluster with simulated nodes: NODES=, DIR=, KUBECONFIG= choose.
	@echo "building: the first time Kubernetes is compiled from source, for 5 to 10 minutes, package by package"
	@$(GO_BUILD) -v -o bin/ $(if $(EXISTING),./cmd/localcluster ./cmd/scheduler ./cmd/kubectl-paddock,./cmd/...)
	@exec bin/localcluster

.PHONY: test
test: prerequisites ## Everything that must pass before a change goes in; pictures of the web pages are left in bin/pictures.
	@$(MAKE) --no-print-directory lint unit integration
	@printf 'pictures of the web pages: %s in bin/pictures\n' "$$(find bin/pictures -name '*.png' | wc -l)"

.PHONY: prerequisites
prerequisites: ## Install what the tests need beside Go, as root with apt-get; else say the command.
	@hack/prerequisites.sh

.PHONY: browser
browser: ## Look at the web pages with Chromium; pictures are left in bin/pictures.
	go test -count=1 -v ./test/browser

.PHONY: unit
unit: unit-race ## Unit tests.
	@$(MAKE) --no-print-directory --jobs=2 --output-sync unit-plain unit-beside

.PHONY: unit-beside
unit-beside: unit-release monitoring karpenter # beside the simulation, which uses one core
	@$(MAKE) --no-print-directory lockorder STEPS=2000

.PHONY: unit-race
unit-race: ## Unit tests with the race detector, of the packages for which it is worth its time.
	packages="$(RACE_PACKAGES)"; CGO_ENABLED=1 go test -race -p 3 -timeout 20m $$packages # some wait

.PHONY: unit-plain
unit-plain: ## Unit tests of the other packages, without the race detector.
	packages="$(PLAIN_PACKAGES)"; if [[ -n $$packages ]]; then go test -timeout 30m $$packages; fi

.PHONY: unit-release
unit-release: ## Tests of the chart, the kustomizations and the image.
	cd $(RELEASE) && go test -count=1 ./... # no cache: it does not look at files outside of the module

.PHONY: monitoring
monitoring: ## Hold the dashboard and the alerts against what is exported; its own module.
	cd test/monitoring && go vet ./... && go test -count=1 ./...

.PHONY: karpenter
karpenter: ## Ask Karpenter's own predicate for which pods it would add nodes; its own module.
	cd test/karpenter && go vet ./... && go test -count=1 ./...

.PHONY: quick
quick: ## Unit tests without the race detector, for the inner loop.
	packages="$(RACE_PACKAGES)"; go test $$packages

.PHONY: simulate
simulate: ## Random histories of the whole scheduler: STEPS= and SEED= choose.
	go test -count=1 -timeout 8h -run '^TestSimulation$$' -v ./test/simulation -args $(if $(STEPS),-steps $(STEPS)) $(if $(SEED),-seed $(SEED))

.PHONY: soak
soak: ## The same, other histories every time, until one fails or it is stopped; SEED=, BY= choose.
	go test -count=1 -timeout 0 -run '^TestSimulation$$' -v ./test/simulation -args -soak $(if $(SEED),-first $(SEED)) $(if $(BY),-by $(BY))

# Packages that have locks; the store has one, and calls nothing under it.
LOCKING := $(addprefix ./pkg/,audit eventlog evict informer inventory metrics plugins/preemption app record rest)

.PHONY: lockorder
lockorder: ## Tests of packages and simulation with locks that watch in which order they are taken: STEPS=, FIRST= choose.
	watching=(go test -count=1 -vet=off -timeout 4h -tags lockorder); "$${watching[@]}" ./pkg/internal/locks $(LOCKING); \
	"$${watching[@]}" -run '^TestSimulation$$' -v ./test/simulation -args -steps $(or $(STEPS),10000) $(if $(FIRST),-first $(FIRST))

.PHONY: integration
integration: ## Tests against a real control plane.
	go test -p 2 -timeout 60m $(INTEGRATION) # each; a first build is part of it

.PHONY: nightly
nightly: ## All long checks, with a summary: PARTS= chooses; see docs/nightly.md.
	hack/nightly.sh $(PARTS)

.PHONY: bench
bench: ## Upstream's scheduler_perf, with our plugins and without, by turns: CASES=, PAIRS=, LARGE=1.
	go test -c -tags perf -o bin/perf.test ./test/perf
	$(GO_BUILD) -o bin/ ./cmd/localplane
	go run ./test/perf/pairs -cases '$(or $(CASES),.)' -pairs $(or $(PAIRS),10) $(if $(LARGE),-large)

.PHONY: gobench
gobench: ## Go benchmarks of the packages; BENCH selects.
	go test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem ./pkg/...

.PHONY: render
render: ## Make manifests/install and the chart's copies from the rest of manifests.
	cd $(RELEASE) && go run . render --manifests ../../manifests

.PHONY: image
image: ## The container image as OCI archive, and its SBOM, in bin/image: ARCH=, IMAGE= choose.
	cd $(RELEASE) && go run . image --root ../.. --out ../../bin/image --arch "$(or $(ARCH),$(shell go env GOARCH))" \
		--version "$(VERSION)" --revision "$(COMMIT)" --created "$(shell git log -1 --format=%ct 2>/dev/null || echo 0)" \
		--reference "$(or $(IMAGE),ghcr.io/paddock-scheduler/scheduler:$(VERSION))" --ldflags "$$PADDOCK_LDFLAGS"

.PHONY: push
push: ## Send the archive of "make image" to a registry: IMAGE= names it, with its tag; with the account of "docker login".
	@cd $(RELEASE) && go run . push --archive "$(abspath $(or $(ARCHIVE),bin/image/scheduler-oci.tar))" --reference "$(IMAGE)"

.PHONY: conformance
conformance: ## Upstream's own suites with our plugins in their profiles.
	go run ./test/conformance -planted
	go run ./test/conformance

.PHONY: lint
lint: $(LINTER) ## golangci-lint with go vet, and whether generated code is up to date.
	hack/update-codegen.sh --check
	go vet -tags perf,ecosystem,hostile ./test/perf/... ./test/integration/...
	$(LINTER) run --allow-parallel-runners ./...
	cd $(RELEASE) && ../../$(LINTER) run --allow-parallel-runners --config ../../.golangci.yaml ./...

$(LINTER): tools/go.mod tools/go.sum
	cd tools && go build -o ../$(LINTER) github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $(LINTER)

.PHONY: generate
generate: ## Regenerate the deep copies of the plugin arguments.
	hack/update-codegen.sh

.PHONY: pages
pages: ## Write the generated pages and lists of docs anew: arguments, reasons, metrics.
	go test ./internal/reference ./pkg/reasons ./pkg/metrics -args -rewrite

.PHONY: samples
samples: ## Write the outputs that pages of docs show anew, from a real control plane.
	go test -count=1 -timeout 60m ./test/integration/docs -args -rewrite

.PHONY: compat
compat: ## Build against the next version of Kubernetes and say what breaks: KUBE=, CONTROLLER_RUNTIME=.
	hack/compat.sh

.PHONY: clean
clean: ## Remove what was built.
	rm -rf bin
