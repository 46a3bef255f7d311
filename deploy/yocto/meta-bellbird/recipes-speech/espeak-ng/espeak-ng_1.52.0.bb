SUMMARY = "Speech synthesizer that needs no network"
DESCRIPTION = "Speaks more than a hundred languages with a few megabytes."
HOMEPAGE = "https://github.com/espeak-ng/espeak-ng"
SECTION = "multimedia"
LICENSE = "GPL-3.0-or-later & Apache-2.0 & BSD-2-Clause & Unicode-DFS-2016"
LIC_FILES_CHKSUM = "\
    file://COPYING;md5=d32239bcb673463ab874e80d47fae504 \
    file://COPYING.APACHE;md5=3b83ef96387f14655fc854ddc3c6bd57 \
    file://COPYING.BSD2;md5=3348c29eaeeacdead1532a5048b3eb587 \
    file://COPYING.UCD;md5=9bc437a2583c6de495e5c4acd7c2c787 \
"

# The program makes its own data, and a program for another processor can't do that here. So the data come from the same
# program, built for this machine. They are the same for all processors with this order of bytes.
DEPENDS:append:class-target = " espeak-ng-native"
COMPATIBLE_HOST = "(aarch64|arm|i.86|x86_64|riscv).*-linux"

SRC_URI = "${DEBIAN_MIRROR}/main/e/espeak-ng/espeak-ng_${PV}+dfsg.orig.tar.gz"
SRC_URI[sha256sum] = "d2a886bae3547a15c52801cb37e415230834a7ee7f9a57352b98d60454d97cea"
S = "${UNPACKDIR}/espeak-ng-${PV}+dfsg"

# In the directory of the source: the makefile expects the data beside it.
inherit autotools-brokensep pkgconfig

# The appliance reads sound from a pipe.
EXTRA_OECONF = "\
    --with-async=no \
    --with-mbrola=no \
    --with-pcaudiolib=no \
    --with-sonic=no \
    --with-speechplayer=no \
"

# Automake asks for these files, which are missing.
do_configure:prepend() {
    touch ${S}/NEWS ${S}/AUTHORS ${S}/ChangeLog ${S}/README
}

# The rules that make its data get into each other's way.
PARALLEL_MAKE:class-native = ""

do_compile:class-target() {
    oe_runmake src/espeak-ng src/libespeak-ng.la
}

do_install:class-target() {
    oe_runmake DESTDIR=${D} bin_PROGRAMS=src/espeak-ng install-libLTLIBRARIES install-binPROGRAMS
    install -d ${D}${datadir}
    cp -R --no-preserve=ownership ${STAGING_DATADIR_NATIVE}/espeak-ng-data ${D}${datadir}/
}

PACKAGES =+ "lib${BPN}"
FILES:lib${BPN} += "${libdir}/libespeak-ng.so.*"
FILES:${PN} += "${datadir}/espeak-ng-data"

BBCLASSEXTEND = "native"
