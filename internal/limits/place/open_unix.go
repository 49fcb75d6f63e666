//go:build unix

package place

import "syscall"

// NonBlocking are the flags of Open with which nothing waits.
const NonBlocking = syscall.O_NONBLOCK | syscall.O_NOCTTY
