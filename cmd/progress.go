package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ingotml/ingot/convert"
	"golang.org/x/term"
)

// createProgress shows how far a create is: one line that is rewritten on a terminal, now and then a line elsewhere, or
// lines of JSON.
type createProgress struct {
	to    io.Writer // nil shows nothing
	style progressStyle
	begun time.Time
	shown time.Time
	seen  bool // a line was shown
	ended bool // the last one was
}

type progressStyle int

const (
	onTerminal progressStyle = iota
	plainLines
	jsonLines
)

// How often a line is rewritten on a terminal, and written elsewhere.
const (
	progressEvery = 100 * time.Millisecond
	plainEvery    = 10 * time.Second
)

func (a *app) createProgress(asJSON bool) *createProgress {
	p := &createProgress{to: a.err, style: plainLines, begun: time.Now()}
	p.shown = p.begun
	f, ok := a.err.(*os.File)
	switch {
	case a.quiet:
		p.to = nil
	case asJSON:
		p.style = jsonLines
	case ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb": // which knows no escape sequences
		p.style = onTerminal
	}
	return p
}

func (p *createProgress) every() time.Duration {
	switch p.style {
	case onTerminal:
		return progressEvery
	case jsonLines:
		return time.Second
	}
	return plainEvery
}

// progressJSON is a line of progress for programs.
type progressJSON struct {
	Event        string  `json:"event"` // progress
	Bytes        int64   `json:"bytes"`
	TotalBytes   int64   `json:"total_bytes"`
	Tensors      int     `json:"tensors"`
	TotalTensors int     `json:"total_tensors"`
	Resumed      int64   `json:"resumed_bytes"`
	Rate         float64 `json:"bytes_per_second"`
	Left         float64 `json:"seconds_left"`
}

func (p *createProgress) set(e convert.Event) {
	done := e.Tensors == e.TotalTensors && e.Bytes == e.TotalBytes
	now := time.Now()
	last := done && p.style == jsonLines // programs see the end of it, however short it was
	if p.to == nil || p.ended || now.Sub(p.shown) < p.every() && !last {
		return
	}
	p.shown, p.seen, p.ended = now, true, last
	rate := float64(e.Bytes-e.Resumed) / max(now.Sub(p.begun).Seconds(), 1e-3)
	left := 0.0
	if rate > 0 {
		left = float64(e.TotalBytes-e.Bytes) / rate
	}
	if p.style == jsonLines {
		_ = json.NewEncoder(p.to).Encode(progressJSON{"progress", e.Bytes, e.TotalBytes, e.Tensors, e.TotalTensors, e.Resumed, rate, left})
		return
	}
	text := fmt.Sprintf("packing %s of %s, %d of %d tensors, %s/s, %s left", size(e.Bytes), size(e.TotalBytes), e.Tensors, e.TotalTensors,
		size(int64(rate)), time.Duration(left*float64(time.Second)).Round(time.Second))
	if p.style == onTerminal {
		fmt.Fprintf(p.to, "\r\x1b[K%s", text)
		return
	}
	fmt.Fprintln(p.to, text)
}

// end clears the line.
func (p *createProgress) end() {
	if p.to != nil && p.style == onTerminal && p.seen {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}

// size is a number of bytes for people, in powers of ten.
func size(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/1000, "kB"
	for _, u := range []string{"MB", "GB", "TB"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1000, u
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}
