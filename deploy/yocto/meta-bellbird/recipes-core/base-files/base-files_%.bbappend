# The partitions of bellbird-rpi.wks.in are in fstab.
FILESEXTRAPATHS:prepend:bellbird := "${THISDIR}/files:"
