//go:build !linux

package main

import "time"

var began = time.Now()

// now returns the time since the program began.
func now() time.Duration { return time.Since(began) }
