package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ingotml/ingot/convert"
)

// progressStyle is how a command shows how far it is.
type progressStyle int

const (
	noProgress progressStyle = iota
	onTerminal               // lines that are drawn over
	plainLines               // a line now and then
	jsonLines
)

// How often progress is drawn on a terminal, and written elsewhere.
const (
	progressEvery = 100 * time.Millisecond
	plainEvery    = 10 * time.Second
)

func (s progressStyle) every() time.Duration {
	switch s {
	case onTerminal:
		return progressEvery
	case jsonLines:
		return time.Second
	}
	return plainEvery
}

// progressStyle chooses by what standard error is.
func (a *app) progressStyle(asJSON bool) progressStyle {
	switch {
	case a.quiet:
		return noProgress
	case asJSON:
		return jsonLines
	case a.err.IsTerminal() && os.Getenv("TERM") != "dumb": // which knows no escape sequences
		return onTerminal
	}
	return plainLines
}

// screen is the end of the terminal that standard error is.
func (a *app) screen() *screen {
	return &screen{to: a.err.Drawing(), size: func() (int, int) {
		if columns, rows := a.err.Size(); columns > 0 {
			return columns, rows
		}
		return 80, 24
	}}
}

// createProgress shows how far a create is: one line that is drawn over on a terminal, now and then a line elsewhere, or
// lines of JSON.
type createProgress struct {
	to     io.Writer
	style  progressStyle
	screen *screen
	begun  time.Time
	shown  time.Time
	ended  bool // the last line was shown
}

func (a *app) createProgress(asJSON bool) *createProgress {
	now := time.Now()
	return &createProgress{to: a.err, style: a.progressStyle(asJSON), screen: a.screen(), begun: now, shown: now}
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
	if p.style == noProgress || p.ended || now.Sub(p.shown) < p.style.every() && !last {
		return
	}
	p.shown, p.ended = now, last
	rate := float64(e.Bytes-e.Resumed) / max(now.Sub(p.begun).Seconds(), 1e-3)
	left := 0.0
	if rate > 0 {
		left = float64(e.TotalBytes-e.Bytes) / rate
	}
	if p.style == jsonLines {
		writeJSONLine(p.to, progressJSON{"progress", e.Bytes, e.TotalBytes, e.Tensors, e.TotalTensors, e.Resumed, rate, left})
		return
	}
	text := fmt.Sprintf("packing %s of %s, %d of %d tensors, %s/s, %s left", size(e.Bytes), size(e.TotalBytes), e.Tensors, e.TotalTensors,
		size(int64(rate)), time.Duration(left*float64(time.Second)).Round(time.Second))
	if p.style == onTerminal {
		p.screen.draw(text)
		return
	}
	fmt.Fprintln(p.to, text)
}

// end clears the line.
func (p *createProgress) end() {
	if p.style == onTerminal {
		p.screen.clear()
	}
}

// writeJSONLine writes a line of progress for programs. One that cannot be written is no reason to stop what it is about.
func writeJSONLine(to io.Writer, v any) {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
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
