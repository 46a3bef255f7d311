SUMMARY = "The whole system of a Bellbird speaker"
DESCRIPTION = "For a Raspberry Pi: a root that is only read, in two slots, and partitions for what is kept."
SECTION = "images"
LICENSE = "Apache-2.0"

# RAUC only recommends its configuration, and an image without it would never be updated.
BELLBIRD_NEEDED_KEYS = "keyring.pem"

inherit core-image bellbird_source bellbird_keys

# Add ssh-server-openssh and debug-tweaks to EXTRA_IMAGE_FEATURES to look into a device.
IMAGE_FEATURES += "read-only-rootfs"
IMAGE_LINGUAS = "en-us"

IMAGE_INSTALL = "\
    packagegroup-core-boot \
    alsa-utils-alsactl \
    alsa-utils-amixer \
    alsa-utils-aplay \
    bellbird \
    bellbird-system \
    bellbird-update \
    kernel-modules \
    wpa-supplicant \
    ${MACHINE_EXTRA_RRECOMMENDS} \
    ${CORE_IMAGE_EXTRA_INSTALL} \
"

# Marking every start as good would leave nothing to the trial that the appliance makes.
PACKAGE_EXCLUDE += "rauc-mark-good"

# In MiB. A root that doesn't fit is found out when it is made, and not by the devices.
BELLBIRD_ROOT_SIZE ?= "512"
IMAGE_ROOTFS_MAXSIZE = "${@int(d.getVar('BELLBIRD_ROOT_SIZE')) * 1024}"
IMAGE_OVERHEAD_FACTOR = "1.1"
WICVARS:append = " BELLBIRD_ROOT_SIZE"

do_image_wic[depends] += "bellbird-boot:do_deploy"
