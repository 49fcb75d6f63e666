package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ingotml/ingot/convert/write"
)

// Style is how a command shows its progress.
type Style int

const (
	NoProgress Style = iota
	OnTerminal       // redrawn in place
	PlainLines       // an occasional line
	JSONLines
)

// Intervals of progress on a terminal and elsewhere.
const (
	progressEvery = 100 * time.Millisecond
	plainEvery    = 10 * time.Second
)

// Every returns the least time between two lines.
func (s Style) Every() time.Duration {
	switch s {
	case OnTerminal:
		return progressEvery
	case JSONLines:
		return time.Second
	}
	return plainEvery
}

// Style chooses the style from the flags and the type of standard error.
func (a *App) Style(asJSON bool) Style {
	switch {
	case a.Quiet:
		return NoProgress
	case asJSON:
		return JSONLines
	case a.Err.IsTerminal() && os.Getenv("TERM") != "dumb": // a dumb terminal supports no escape sequences
		return OnTerminal
	}
	return PlainLines
}

// Progress shows the progress of a create: a line that is redrawn on a terminal, occasional lines elsewhere, or
// JSON lines.
type Progress struct {
	to     io.Writer
	style  Style
	screen *Screen
	begun  time.Time
	shown  time.Time
	ended  bool // the final line is out
}

// Progress begins to show the progress of an operation.
func (a *App) Progress(asJSON bool) *Progress {
	now := time.Now()
	return &Progress{to: a.Err, style: a.Style(asJSON), screen: a.Screen(), begun: now, shown: now}
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

// Pack shows how much of an image is written.
func (p *Progress) Pack(e write.Event) {
	done := e.Tensors == e.TotalTensors && e.Bytes == e.TotalBytes
	now := time.Now()
	last := done && p.style == JSONLines // programs always get a final event, even of a short run
	if p.style == NoProgress || p.ended || now.Sub(p.shown) < p.style.Every() && !last {
		return
	}
	p.shown, p.ended = now, last
	rate := float64(e.Bytes-e.Resumed) / max(now.Sub(p.begun).Seconds(), 1e-3)
	left := 0.0
	if rate > 0 {
		left = float64(e.TotalBytes-e.Bytes) / rate
	}
	if p.style == JSONLines {
		WriteJSONLine(p.to, progressJSON{"progress", e.Bytes, e.TotalBytes, e.Tensors, e.TotalTensors, e.Resumed, rate, left})
		return
	}
	text := fmt.Sprintf("packing %s of %s, %d of %d tensors, %s/s, %s left", Size(e.Bytes), Size(e.TotalBytes), e.Tensors,
		e.TotalTensors,
		Size(int64(rate)), time.Duration(left*float64(time.Second)).Round(time.Second))
	if p.style == OnTerminal {
		p.screen.Draw(text)
		return
	}
	fmt.Fprintln(p.to, text)
}

// Line shows a line, unless one was shown just before.
func (p *Progress) Line(text string) {
	now := time.Now()
	if p.style == NoProgress || now.Sub(p.shown) < p.style.Every() {
		return
	}
	p.shown = now
	if p.style == OnTerminal {
		p.screen.Draw(text)
		return
	}
	fmt.Fprintln(p.to, text)
}

// End clears the progress line.
func (p *Progress) End() {
	if p.style == OnTerminal {
		p.screen.Clear()
	}
}

// WriteJSONLine writes a progress event. It ignores errors: failing to report progress must not stop the operation.
func WriteJSONLine(to io.Writer, v any) {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}

// TokenProgress shows how many tokens were read.
type TokenProgress struct {
	*Progress
	Doing string
}

// Set shows how many tokens are done.
func (p TokenProgress) Set(done, total int) {
	p.Line(fmt.Sprintf("%s: %d of %d tokens", p.Doing, done, total))
}

// ByteProgress shows the progress of an operation in bytes, in the style of Progress.
type ByteProgress struct {
	*Progress
	Verb string // "checking" or "copying"
}

type byteProgressJSON struct {
	Event      string  `json:"event"` // always "progress"
	Bytes      int64   `json:"bytes"`
	TotalBytes int64   `json:"total_bytes"`
	Rate       float64 `json:"bytes_per_second"`
	Left       float64 `json:"seconds_left"`
}

// Set shows how many bytes are done.
func (p ByteProgress) Set(done, total int64) {
	now := time.Now()
	if p.style == NoProgress || now.Sub(p.shown) < p.style.Every() {
		return
	}
	p.shown = now
	rate := float64(done) / max(now.Sub(p.begun).Seconds(), 1e-3)
	left := float64(total-done) / max(rate, 1)
	if p.style == JSONLines {
		WriteJSONLine(p.to, byteProgressJSON{"progress", done, total, rate, left})
		return
	}
	text := fmt.Sprintf("%s %s of %s, %s/s, %s left", p.Verb, Size(done), Size(total), Size(int64(rate)),
		time.Duration(left*float64(time.Second)).Round(time.Second))
	if p.style == OnTerminal {
		p.screen.Draw(text)
		return
	}
	fmt.Fprintln(p.to, text)
}
