//go:build !race

package runtest

// Race reports whether the race detector is on. It multiplies memory by 5 to 10 and the time of Go loops by as much.
const Race = false
