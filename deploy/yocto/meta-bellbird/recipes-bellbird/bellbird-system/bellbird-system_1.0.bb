SUMMARY = "What makes a Raspberry Pi a device for years"
DESCRIPTION = "The choice of the slot, partitions that are checked and grow, settings that outlive an update, logs in memory."
SECTION = "base"
LICENSE = "Apache-2.0"
LIC_FILES_CHKSUM = "file://${COMMON_LICENSE_DIR}/Apache-2.0;md5=89aea4e17d99a7cacdbeed46a0096b10"

SRC_URI = "\
    file://bellbird-grow.service \
    file://bellbird-mixer.service \
    file://bellbird-settings.service \
    file://grow \
    file://journald.conf \
    file://network.network \
    file://restart.conf \
    file://settings \
    file://tryboot \
    file://watchdog.conf \
"
S = "${WORKDIR}/sources"
UNPACKDIR = "${S}"

inherit allarch systemd

do_configure[noexec] = "1"
do_compile[noexec] = "1"

do_install() {
    for f in grow settings tryboot; do
        install -D -m 0755 ${S}/$f ${D}${nonarch_libdir}/bellbird/$f
    done
    for f in bellbird-grow bellbird-mixer bellbird-settings; do
        install -D -m 0644 ${S}/$f.service ${D}${systemd_system_unitdir}/$f.service
    done
    install -D -m 0644 ${S}/restart.conf ${D}${systemd_system_unitdir}/bellbird-restart.service.d/tryboot.conf
    install -D -m 0644 ${S}/watchdog.conf ${D}${nonarch_libdir}/systemd/system.conf.d/50-bellbird.conf
    install -D -m 0644 ${S}/journald.conf ${D}${nonarch_libdir}/systemd/journald.conf.d/50-bellbird.conf
    install -D -m 0644 ${S}/network.network ${D}${nonarch_libdir}/systemd/network/50-bellbird.network

    # The places at which partitions and settings are mounted.
    install -d ${D}/boot/select ${D}${sysconfdir}/wpa_supplicant
    install -d ${D}${sysconfdir}/systemd/system/multi-user.target.wants
    ln -s ${systemd_system_unitdir}/wpa_supplicant@.service \
        ${D}${sysconfdir}/systemd/system/multi-user.target.wants/wpa_supplicant@wlan0.service
}

FILES:${PN} += "\
    /boot/select \
    ${nonarch_libdir}/bellbird \
    ${nonarch_libdir}/systemd \
    ${sysconfdir}/systemd/system \
    ${sysconfdir}/wpa_supplicant \
    ${systemd_system_unitdir} \
"

SYSTEMD_SERVICE:${PN} = "bellbird-grow.service bellbird-mixer.service bellbird-settings.service"

RDEPENDS:${PN} += "\
    alsa-utils-alsactl \
    coreutils \
    e2fsprogs-e2fsck \
    util-linux-fsck \
    util-linux-mount \
    util-linux-mountpoint \
    util-linux-partx \
    util-linux-sfdisk \
    util-linux-uuidgen \
    wpa-supplicant \
"
