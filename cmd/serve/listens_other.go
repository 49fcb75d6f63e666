//go:build !linux && !darwin

package serve

// portOwner returns "": this system has no supported way to find a port's process.
func portOwner(int) string { return "" }
