//go:build !unix

package main

import "time"

func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }
