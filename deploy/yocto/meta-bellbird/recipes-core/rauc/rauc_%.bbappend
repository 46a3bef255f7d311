# The appliance itself marks a slot as good, when it has seen that it works.
RRECOMMENDS:${PN}:remove:bellbird = "${PN}-mark-good"
SYSTEMD_AUTO_ENABLE:${PN}-mark-good:bellbird = "disable"
