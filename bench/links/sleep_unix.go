//go:build unix

package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepUntil blocks its thread until a time, within some 60 us. The timers of Go's runtime are rounded to milliseconds
// where its threads wait for connections, which is as much as the links' latencies.
func sleepUntil(at time.Time) {
	for d := time.Until(at); d > 0; d = time.Until(at) {
		tv := unix.NsecToTimeval(d.Nanoseconds())
		_, _ = unix.Select(0, nil, nil, nil, &tv) // after a signal it waits for what is left
	}
}
