EXTRA_OECONF ?= ""
DISABLE_STATIC = " --disable-static"
