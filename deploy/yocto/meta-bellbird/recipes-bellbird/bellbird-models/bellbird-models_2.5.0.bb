SUMMARY = "Wake word models of microWakeWord"
DESCRIPTION = "The models that the package pymicro-wakeword comes with, without its program."
SECTION = "multimedia"
LICENSE = "Apache-2.0"
LIC_FILES_CHKSUM = "file://pymicro_wakeword-${PV}.dist-info/licenses/LICENSE;md5=86d3f3a95c324c9479bd8986968f4327"

# The same file as in deploy/dev/models.txt. A wheel is a zip, and BitBake goes by the name. The models in it are the same
# for all machines.
PYPI_PACKAGE = "pymicro-wakeword"
PYPI_ARCHIVE_NAME = "pymicro_wakeword-${PV}-py3-none-manylinux_2_35_x86_64.whl"
PYPI_SRC_URI = "${@bellbird_wheel_uri(d)}"
SRC_URI[sha256sum] = "3869f536402b1254e3be3549d3a462ecd6ed21ce2c3e77ec8eb501c3c700417c"

inherit allarch pypi bellbird_wheel

do_install() {
    for f in ${S}/pymicro_wakeword/models/*.json ${S}/pymicro_wakeword/models/*.tflite; do
        install -D -m 0644 $f ${D}${datadir}/bellbird/models/$(basename $f)
    done
}

FILES:${PN} += "${datadir}/bellbird/models"
