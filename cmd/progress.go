package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ingotml/ingot/convert/write"
)

// progressStyle is how a command shows its progress.
type progressStyle int

const (
	noProgress progressStyle = iota
	onTerminal               // redrawn in place
	plainLines               // an occasional line
	jsonLines
)

// Intervals of progress on a terminal and elsewhere.
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

// progressStyle chooses the style from the flags and the type of standard error.
func (a *app) progressStyle(asJSON bool) progressStyle {
	switch {
	case a.quiet:
		return noProgress
	case asJSON:
		return jsonLines
	case a.err.IsTerminal() && os.Getenv("TERM") != "dumb": // a dumb terminal supports no escape sequences
		return onTerminal
	}
	return plainLines
}

// screen returns a screen that draws on standard error.
func (a *app) screen() *screen {
	return &screen{to: a.err.Drawing(), size: func() (int, int) {
		if columns, rows := a.err.Size(); columns > 0 {
			return columns, rows
		}
		return 80, 24
	}}
}

// createProgress shows the progress of a create: a line that is redrawn on a terminal, occasional lines elsewhere, or
// JSON lines.
type createProgress struct {
	to     io.Writer
	style  progressStyle
	screen *screen
	begun  time.Time
	shown  time.Time
	ended  bool // the final line is out
}

func (a *app) createProgress(asJSON bool) *createProgress {
	now := time.Now()
	return &createProgress{to: a.err, style: a.progressStyle(asJSON), screen: a.screen(), begun: now, shown: now}
}

// progressJSON is a progress event of --json.
type progressJSON struct {
	Event        string  `json:"event"` // always "progress"
	Bytes        int64   `json:"bytes"`
	TotalBytes   int64   `json:"total_bytes"`
	Tensors      int     `json:"tensors"`
	TotalTensors int     `json:"total_tensors"`
	Resumed      int64   `json:"resumed_bytes"`
	Rate         float64 `json:"bytes_per_second"`
	Left         float64 `json:"seconds_left"`
}

func (p *createProgress) set(e write.Event) {
	done := e.Tensors == e.TotalTensors && e.Bytes == e.TotalBytes
	now := time.Now()
	last := done && p.style == jsonLines // programs always get a final event, even of a short run
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
	text := fmt.Sprintf("packing %s of %s, %d of %d tensors, %s/s, %s left", size(e.Bytes), size(e.TotalBytes), e.Tensors,
		e.TotalTensors,
		size(int64(rate)), time.Duration(left*float64(time.Second)).Round(time.Second))
	if p.style == onTerminal {
		p.screen.draw(text)
		return
	}
	fmt.Fprintln(p.to, text)
}

// line shows a line, unless one was shown just before.
func (p *createProgress) line(text string) {
	now := time.Now()
	if p.style == noProgress || now.Sub(p.shown) < p.style.every() {
		return
	}
	p.shown = now
	if p.style == onTerminal {
		p.screen.draw(text)
		return
	}
	fmt.Fprintln(p.to, text)
}

// end clears the progress line.
func (p *createProgress) end() {
	if p.style == onTerminal {
		p.screen.clear()
	}
}

// writeJSONLine writes a progress event. It ignores errors: failing to report progress must not stop the operation.
func writeJSONLine(to io.Writer, v any) {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}

// size formats a number of bytes for people, in powers of ten.
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
