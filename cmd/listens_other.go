//go:build !linux && !darwin

package cmd

// portOwner returns "": this system has no supported way to find a port's process.
func portOwner(int) string { return "" }
