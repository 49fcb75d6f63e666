//go:build unix

package main

import "syscall"

// sync writes dirty pages out, so that one program does not pay for what another wrote.
func sync() { syscall.Sync() }
