//go:build !linux && !darwin

package remote

import "syscall"

func limitUnsent(syscall.RawConn) {}
