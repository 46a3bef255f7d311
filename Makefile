# Bellbird. `make demo` and `make test` set up what they need by themselves; see README.md.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
BUILT := $(shell git log -1 --format=%cI 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.built=$(BUILT)
STATICCHECK := 0.8.2

# Go, Python and compilers of the machine, or what setup.sh put into build/.
export PATH := $(PATH):$(CURDIR)/build/go/bin
export GOTOOLCHAIN := local
# The same flags for all, so that what is compiled once serves all.
export GOFLAGS := -buildvcs=false -trimpath

DEMO_FLAGS ?=

.PHONY: demo test build models setup setup-test fmt vet lint tidy unit nocgo race smoke soak arm64 armv7 bench bench-store compare-peers wake-eval clean

demo: build
	build/bellbird demo --models models $(DEMO_FLAGS)

test: setup-test fmt vet lint tidy race nocgo arm64 armv7 smoke verify-units
	@echo "make test: all passed"

build: setup
	go build -ldflags '$(LDFLAGS)' -o build/bellbird ./cmd/appliance

setup models:
	@deploy/dev/setup.sh demo

setup-test:
	@deploy/dev/setup.sh test

# What make test consists of.

fmt:
	@files=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$files" ] || { echo "not formatted, run gofmt -w on:" $$files; exit 1; }

vet:
	go vet ./...

lint: build/bin/staticcheck
	build/bin/staticcheck ./...

build/bin/staticcheck: | setup-test
	GOBIN=$(CURDIR)/build/bin go install honnef.co/go/tools/cmd/staticcheck@v$(STATICCHECK)

tidy:
	go mod tidy -diff

race:
	go test -race -short ./...

nocgo:
	CGO_ENABLED=0 go test ./...

# The program as it is shipped, in full: the demo on the virtual clock, and the appliance on a real sound server, among others.
# What was said is recognised again in the recordings.
smoke: build
	BELLBIRD_BINARY=$(CURDIR)/build/bellbird go test -count=1 ./cmd/appliance
	go test -count=1 -run OnPulse ./audio/malgo

# What takes long: ten hours' worth of hostile plugins on the virtual clock and two minutes on the real one, and a
# thousand crashes of the store.
soak: build
	BELLBIRD_SPEECH=10h BELLBIRD_REAL_CLOCK=1 go test -count=1 -v -timeout 30m -run 'TestHoursOf|OnTheRealClock' ./pipeline
	BELLBIRD_SOAK=1 go test -count=1 -v -timeout 60m -run 'Killed|Damage' ./store
	BELLBIRD_SOAK=1 go test -count=1 -v -run GhostsLeaveNoTrace ./cmd/appliance
	BELLBIRD_SOAK=1 go test -count=1 -v -timeout 30m -run NoGlitches ./audio/malgo
	BELLBIRD_OWN_SPEECH=60 go test -count=1 -v -timeout 120m -run OwnVoice ./audio/echo

# Cross builds. The recogniser is linked statically from packages of the target's architecture.

arm64 armv7: setup-test
	deploy/sysroot.sh $(DEBIAN_$@) build/sysroot/$(DEBIAN_$@)
	CGO_ENABLED=1 GOOS=linux $(ENV_$@) go build -ldflags '$(LDFLAGS)' -o build/bellbird-$@ ./cmd/appliance

DEBIAN_arm64 := arm64
ENV_arm64 := GOARCH=arm64 CC=aarch64-linux-gnu-gcc \
	CGO_CFLAGS="-O2 -g -I$(CURDIR)/build/sysroot/arm64/usr/include" \
	CGO_LDFLAGS="-L$(CURDIR)/build/sysroot/arm64/usr/lib/aarch64-linux-gnu"
DEBIAN_armv7 := armhf
ENV_armv7 := GOARCH=arm GOARM=7 CC=arm-linux-gnueabihf-gcc \
	CGO_CFLAGS="-O2 -g -D_TIME_BITS=64 -D_FILE_OFFSET_BITS=64 -I$(CURDIR)/build/sysroot/armhf/usr/include" \
	CGO_LDFLAGS="-L$(CURDIR)/build/sysroot/armhf/usr/lib/arm-linux-gnueabihf"

# Measurements, each beside its target. They never fail.
bench: setup-test build arm64
	build/bellbird bench --binary build/bellbird-arm64 \
		--models models$(if $(wildcard $(SHARED)/microwakeword),$(comma)$(SHARED)/microwakeword) \
		$(if $(wildcard $(SHARED)/openwakeword),--openwakeword $(SHARED)/openwakeword)
	BELLBIRD_MEASURE=1 BELLBIRD_SPEECH=10h go test -count=1 -v -run 'TestDelayBy|TestHoursOf' ./pipeline

	go test -run '^$$' -bench Cache -benchtime 1x ./llm/llmtest
	go test -run '^$$' -bench 'Callback|Hear$$|Step$$' -benchtime 500x ./audio/malgo ./audio/echo ./wake
	go test -run '^$$' -bench . -benchtime 50x ./mqtt ./plugins/mcp ./api
	BELLBIRD_BINARY=$(CURDIR)/build/bellbird go test -count=1 -v -run BargeInOnPulse ./cmd/appliance
	go test -count=1 -v -run LatencyOnPulse ./audio/malgo
	go test -run '^$$' -bench TextToRequest -benchtime 200x ./cmd/appliance
	cd store/compare && go test -short -run '^$$' -bench 'Put|Append|Turn|Open|Rename|Delete' -benchtime 20x .

# The store beside SQLite with a million rows, which takes SQLite ten minutes.
bench-store: setup-test
	cd store/compare && go test -run '^$$' -bench . -benchtime 5x -timeout 60m .

# Models beside the checkout that are only for measuring.
SHARED := ../shared/data/models
comma := ,

# Compares features and scores with the reference implementations, in Python.
compare-peers: setup-test
	wake/compare/run.sh
	$(if $(wildcard $(SHARED)/openwakeword),wake/compare/run.sh openwakeword)
	audio/echo/compare/run.sh

# Miss rates and false accepts of the wake words, on the recordings beside the checkout.
wake-eval: build
	wake/compare/eval.sh ../shared/data

include deploy/package.mk
include deploy/yocto.mk
include deploy/device.mk
include deploy/ha.mk
include deploy/wyoming.mk
include deploy/console.mk

clean:
	rm -rf build demo.wav
