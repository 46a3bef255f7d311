SUMMARY = "What the layer appends to"
RAUC_KEYRING_FILE ??= "ca.cert.pem"
SRC_URI = "file://system.conf file://${RAUC_KEYRING_FILE}"

do_install() {
    install -D -m 0644 ${@bb.utils.which(d.getVar('FILESPATH'), 'system.conf')} ${D}${sysconfdir}/rauc/system.conf
}
