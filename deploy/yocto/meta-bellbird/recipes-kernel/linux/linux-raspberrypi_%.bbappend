# What the sandbox of plugins, RAUC and the watchdog need of the kernel.
FILESEXTRAPATHS:prepend:bellbird := "${THISDIR}/files:"
SRC_URI:append:bellbird = " file://bellbird.cfg"
