# The configuration of RAUC for the partitions of bellbird-rpi.wks.in, and the keyring of who builds this.
FILESEXTRAPATHS:prepend:bellbird := "${BELLBIRD_KEY_DIR}:${THISDIR}/files:"

BELLBIRD_NEEDED_KEYS:bellbird = "keyring.pem"
RAUC_KEYRING_FILE:bellbird = "keyring.pem"

inherit bellbird_keys

PACKAGE_ARCH:bellbird = "${MACHINE_ARCH}"

do_install:append:bellbird() {
    sed -i -e 's/@MACHINE@/${MACHINE}/' ${D}${sysconfdir}/rauc/system.conf
}
