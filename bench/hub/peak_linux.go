package main

import (
	"os"
	"syscall"
)

// peakOf returns a process's largest resident size in bytes.
func peakOf(p *os.ProcessState) int64 {
	if u, ok := p.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss << 10
	}
	return 0
}
