package cmd

import (
	"fmt"
	"time"
)

// byteProgress shows the progress of an operation in bytes, in the style of createProgress.
type byteProgress struct {
	*createProgress
	verb string // "checking" or "copying"
}

type byteProgressJSON struct {
	Event      string  `json:"event"` // always "progress"
	Bytes      int64   `json:"bytes"`
	TotalBytes int64   `json:"total_bytes"`
	Rate       float64 `json:"bytes_per_second"`
	Left       float64 `json:"seconds_left"`
}

func (p byteProgress) set(done, total int64) {
	now := time.Now()
	if p.style == noProgress || now.Sub(p.shown) < p.style.every() {
		return
	}
	p.shown = now
	rate := float64(done) / max(now.Sub(p.begun).Seconds(), 1e-3)
	left := float64(total-done) / max(rate, 1)
	if p.style == jsonLines {
		writeJSONLine(p.to, byteProgressJSON{"progress", done, total, rate, left})
		return
	}
	text := fmt.Sprintf("%s %s of %s, %s/s, %s left", p.verb, size(done), size(total), size(int64(rate)),
		time.Duration(left*float64(time.Second)).Round(time.Second))
	if p.style == onTerminal {
		p.screen.draw(text)
		return
	}
	fmt.Fprintln(p.to, text)
}
