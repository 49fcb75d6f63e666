//go:build !linux && !darwin

package machine

// physicalMemory returns 0: the engine does not run on this system.
func physicalMemory() int64 { return 0 }
