//go:build !linux

package machine

// DeprioritizeMonitor does nothing: the slowdown was measured only on Linux.
func DeprioritizeMonitor() {}
