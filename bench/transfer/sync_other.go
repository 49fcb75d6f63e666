//go:build !unix

package main

// sync does nothing: this benchmark's registry runs on Debian only.
func sync() {}
