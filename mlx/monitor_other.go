//go:build !linux

package mlx

// deprioritizeMonitor does nothing: the slowdown was measured only on Linux.
func deprioritizeMonitor() {}
