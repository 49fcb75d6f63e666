//go:build !darwin

package engine

func macOSVersion() int { return 0 }
