package install

// Swap is exchange where the file system can't do it in one step.
var Swap = swap
