package worker

// Memory is what a worker may use, in bytes, when nothing else is said. The runtime takes memory from the system in pieces
// of 64 MiB, which count whole; there is room for two.
const Memory = 192 << 20
