package cmd

import (
	"fmt"
	"time"
)

// fsckProgress shows how much of the store is hashed, in the ways of createProgress.
type fsckProgress struct{ *createProgress }

type fsckProgressJSON struct {
	Event      string  `json:"event"` // progress
	Bytes      int64   `json:"bytes"`
	TotalBytes int64   `json:"total_bytes"`
	Rate       float64 `json:"bytes_per_second"`
	Left       float64 `json:"seconds_left"`
}

func (p fsckProgress) set(done, total int64) {
	now := time.Now()
	if p.style == noProgress || now.Sub(p.shown) < p.style.every() {
		return
	}
	p.shown = now
	rate := float64(done) / max(now.Sub(p.begun).Seconds(), 1e-3)
	left := float64(total-done) / max(rate, 1)
	if p.style == jsonLines {
		writeJSONLine(p.to, fsckProgressJSON{"progress", done, total, rate, left})
		return
	}
	text := fmt.Sprintf("checking %s of %s, %s/s, %s left", size(done), size(total), size(int64(rate)), time.Duration(left*float64(time.Second)).Round(time.Second))
	if p.style == onTerminal {
		p.screen.draw(text)
		return
	}
	fmt.Fprintln(p.to, text)
}
