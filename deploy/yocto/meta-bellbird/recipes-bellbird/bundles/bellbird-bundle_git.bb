SUMMARY = "The update that brings a Bellbird speaker to this version"
DESCRIPTION = "A bundle of RAUC with both partitions of a slot, signed by who builds it."
SECTION = "images"
LICENSE = "Apache-2.0"

PV = "${@d.getVar('BELLBIRD_VERSION') or '0'}"
SRC_URI = ""

BELLBIRD_NEEDED_KEYS = "bundle.cert.pem bundle.key.pem keyring.pem"

inherit bundle bellbird_source bellbird_keys

# The version is what devices compare, and the same as IMAGE_VERSION in os-release.
RAUC_BUNDLE_COMPATIBLE = "bellbird-${MACHINE}"
RAUC_BUNDLE_VERSION = "${BELLBIRD_VERSION}"
RAUC_BUNDLE_FORMAT = "verity"
RAUC_BUNDLE_BUILD = "${BELLBIRD_BUILT}"

RAUC_BUNDLE_SLOTS = "rootfs boot"
RAUC_SLOT_rootfs = "bellbird-image"
RAUC_SLOT_rootfs[fstype] = "ext4"
RAUC_SLOT_boot = "bellbird-boot"
RAUC_SLOT_boot[type] = "file"
RAUC_SLOT_boot[file] = "bellbird-boot-${MACHINE}.vfat"

RAUC_KEY_FILE = "${BELLBIRD_KEY_DIR}/bundle.key.pem"
RAUC_CERT_FILE = "${BELLBIRD_KEY_DIR}/bundle.cert.pem"
RAUC_KEYRING_FILE = "${BELLBIRD_KEY_DIR}/keyring.pem"
