SUMMARY = "What the layer appends to"
