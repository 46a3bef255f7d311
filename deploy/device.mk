# The appliance on a virtual device: a whole arm64 machine in software (docs/virtual-device.md). The Makefile includes this.

.PHONY: test-device bench-device device

DEVICE := $(CURDIR)/build/device
DEVICE_SHARE := $(DEVICE)/share
DEVICE_TEST := BELLBIRD_DEVICE=$(DEVICE) go test -count=1 -timeout 20m -v

test-device: device
	$(DEVICE_TEST) -skip Figures ./deploy/device

# Measurements on its processor, each beside its target. They never fail.
bench-device: device
	$(DEVICE_TEST) -run Figures ./deploy/device

# What it boots, and what it finds there: the appliance, its models, and what is measured.
device: arm64 models
	deploy/dev/setup.sh device
	deploy/device/fetch.sh $(DEVICE)
	mkdir -p $(DEVICE_SHARE)/models
	cp build/bellbird-arm64 $(DEVICE_SHARE)/bellbird
	cp models/*.json models/*.tflite $(DEVICE_SHARE)/models/
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go build -ldflags '-s -w' -o $(DEVICE_SHARE)/agent ./deploy/device/agent
	for p in wake audio/echo; do \
		CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go test -c -o $(DEVICE_SHARE)/$$(basename $$p).test ./$$p || exit 1; \
	done
