//go:build !linux && !darwin

package mlx

// physicalMemory is not asked for where the engine does not run.
func physicalMemory() int64 { return 0 }
