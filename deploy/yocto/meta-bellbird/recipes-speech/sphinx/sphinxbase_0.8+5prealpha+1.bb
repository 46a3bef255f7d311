SUMMARY = "Library that PocketSphinx is made with"
DESCRIPTION = "Features, language models and grammars for speech recognition."

require sphinx.inc

LIC_FILES_CHKSUM = "file://LICENSE;md5=b15c818b9504393d35df76807094a51c"

DEPENDS += "bison-native"

DEBIAN_REVISION = "16"
SRC_URI[orig.sha256sum] = "f72bdb59e50b558bed47cc2105777200d2b246a0f328e913de16a9b22f9a246f"
SRC_URI[debian.sha256sum] = "3f754cac04ae963262b7d8dfb28eb704ad0aaf906495a6f112b93186eb2f1ab6"

EXTRA_OECONF += "--without-lapack"
