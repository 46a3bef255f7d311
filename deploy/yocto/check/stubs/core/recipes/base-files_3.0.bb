SUMMARY = "What the layer appends to"
SRC_URI = "file://fstab"
