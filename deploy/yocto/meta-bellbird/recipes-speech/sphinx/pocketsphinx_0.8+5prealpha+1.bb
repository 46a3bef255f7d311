SUMMARY = "Speech recogniser that needs no network"
DESCRIPTION = "PocketSphinx, with a model of American English."

require sphinx.inc

LIC_FILES_CHKSUM = "file://LICENSE;md5=98034d99abfdcf2712d3a07e6df00b21"

DEPENDS += "sphinxbase"

DEBIAN_REVISION = "15"
SRC_URI[orig.sha256sum] = "ef5bb5547e2712bdf571f256490ef42a47962033892efd9d7df8eed7fe573ed9"
SRC_URI[debian.sha256sum] = "c53b64c245e6656800d8e6054614c0c6efe69b13d964e0e8183e33042d1a081a"

# The appliance uses a grammar, and leaves the 27 MB of the language model alone.
PACKAGES =+ "${PN}-en-us ${PN}-en-us-lm"
FILES:${PN}-en-us += "\
    ${datadir}/pocketsphinx/model/en-us/cmudict-en-us.dict \
    ${datadir}/pocketsphinx/model/en-us/en-us \
"
FILES:${PN}-en-us-lm += "${datadir}/pocketsphinx/model/en-us/*.lm.bin"
