SUMMARY = "What the layer appends to"
RRECOMMENDS:${PN} = "virtual-rauc-conf ${PN}-mark-good"
