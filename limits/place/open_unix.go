//go:build unix

package place

import "syscall"

const nonBlocking = syscall.O_NONBLOCK | syscall.O_NOCTTY
