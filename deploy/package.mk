# Debian packages, their checksums and bills of materials, and the checks of the systemd units. The Makefile includes this
# after it has set LDFLAGS.

.PHONY: amd64 deb deb-amd64 deb-arm64 deb-armhf sbom checksums verify-units test-deb reproduce

# The linker's own mark depends on where the checkout is.
LDFLAGS += -buildid=

export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
DEB_VERSION ?= $(shell deploy/package/version.sh)

# The binaries of Debian's architectures, as make calls them.
DEB_BINARY_amd64 := amd64
DEB_BINARY_arm64 := arm64
DEB_BINARY_armhf := armv7
DEB_DIR := build/deb

# Without a cross compiler: on a machine of this architecture.
amd64: setup-test
	CGO_ENABLED=1 GOOS=linux GOARCH=amd64 go build -ldflags '$(LDFLAGS)' -o build/bellbird-amd64 ./cmd/appliance

deb: deb-amd64 deb-arm64 deb-armhf checksums

deb-amd64: amd64
deb-arm64: arm64
deb-armhf: armv7
deb-amd64 deb-arm64 deb-armhf: deb-%: models
	@rm -f $(DEB_DIR)/bellbird_*_$*.deb
	@mkdir -p $(DEB_DIR)
	go run ./deploy/package/sbom -version '$(DEB_VERSION)' -models models \
		-libraries "$$(dpkg-query -W -f '$${source:Package}=$${Version}\n' libpocketsphinx-dev libsphinxbase-dev | paste -s -d ,)" \
		-licences $(DEB_DIR)/licences-$*.txt -o $(DEB_DIR)/bellbird-$*.cdx.json build/bellbird-$(DEB_BINARY_$*)
	DEB_VERSION='$(DEB_VERSION)' deploy/package/build.sh $* build/bellbird-$(DEB_BINARY_$*) models \
		$(DEB_DIR)/bellbird-$*.cdx.json $(DEB_DIR)/licences-$*.txt $(DEB_DIR)

# They come with the packages.
sbom: deb

checksums:
	cd $(DEB_DIR) && sha256sum *.deb *.cdx.json >SHA256SUMS && cat SHA256SUMS

# systemd's own opinion of the units, where it is installed.
verify-units:
	deploy/package/verify-units.sh

# The package is installed, upgraded, removed and purged in a Debian of its own, and run there under systemd. What needs
# root, debootstrap or systemd-nspawn is skipped where they are missing, and says so.
test-deb: deb-amd64
	deploy/package/test-scripts.sh
	deploy/package/test-install.sh $(DEB_DIR)/bellbird_*_amd64.deb
	deploy/package/test-boot.sh $(DEB_DIR)/bellbird_*_amd64.deb

# The commit is built once more, elsewhere and from nothing, and must come out the same.
reproduce: deb-amd64
	deploy/package/reproduce.sh $(DEB_DIR)/bellbird_*_amd64.deb
