//go:build !unix

package engine

func processGone(int) bool { return true }
