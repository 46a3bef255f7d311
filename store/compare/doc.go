// Package compare measures the store beside SQLite with a table like that of the hook contract's reference. It has only
// benchmarks; nothing of it gets into the appliance.
package compare
