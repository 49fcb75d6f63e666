package transfer

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/registry"
)

// Progress shows the progress of a push or pull. On a terminal it shows a line per active blob and a total;
// elsewhere the total from time to time, or JSON lines. set receives the events of one operation. end stops the display
// and prints a summary, unless the operation failed.
type Progress struct {
	to     io.Writer
	style  cli.Style
	screen *cli.Screen
	now    func() time.Time

	mu    sync.Mutex
	tally *tally
	noted map[string]bool // keys of notes that were printed
	notes []string        // to be printed above the lines of a terminal
	ended bool
	stop  chan struct{}
	drawn sync.WaitGroup
}

// NewProgress starts the display. verb is "push", "pull", "copy" or "check".
func NewProgress(a *cli.App, verb string, asJSON bool) *Progress {
	p := newProgress(a.Err, verb, a.Style(asJSON), a.Screen(), time.Now)
	if p.style == cli.NoProgress {
		return p
	}
	p.drawn.Go(func() {
		ticks := time.NewTicker(p.style.Every())
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				p.draw()
			case <-p.stop:
				return
			}
		}
	})
	return p
}

func newProgress(
	to io.Writer, verb string, style cli.Style, s *cli.Screen, now func() time.Time,
) *Progress {
	return &Progress{
		to:     to,
		style:  style,
		screen: s,
		now:    now,
		tally:  newTally(verb, now()),
		noted:  map[string]bool{},
		stop:   make(chan struct{}),
	}
}

// Set handles an event.
func (p *Progress) Set(e registry.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.tally.add(e, p.now())
	switch {
	case p.style == cli.NoProgress:
	case p.style == cli.JSONLines:
		p.writeBlob(e)
	case e.Kind == registry.Warned && e.Err != nil:
		p.note(Warning(e), Warning(e))
	case e.Kind == registry.Paused:
		if p.style == cli.PlainLines && e.Wait >= noticeWait {
			fmt.Fprintf(p.to, "%s (%s)\n", paused(e.Wait), terminal.Line(e.Name))
		}
	case e.Kind == registry.Waiting:
		p.note("waiting "+string(e.Digest), fmt.Sprintf("waiting for another process that is downloading %s", blobName(e)))
	case e.Kind == registry.Retry && e.Err != nil && !p.tally.paused(p.now()):
		p.note(string(e.Digest)+e.Name, fmt.Sprintf("retrying %s: %v", blobName(e), e.Err))
	}
}

// Counts returns the totals so far.
func (p *Progress) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tally.Counts
}

// note prints a text once per key.
func (p *Progress) note(key, text string) {
	if p.noted[key] {
		return
	}
	p.noted[key] = true
	if p.style == cli.OnTerminal {
		p.notes = append(p.notes, text)
		return
	}
	fmt.Fprintln(p.to, terminal.Line(text))
}

// draw shows the current progress.
func (p *Progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.ended || !p.tally.planned && !p.tally.paused(now) {
		return
	}
	switch p.style {
	case cli.OnTerminal:
		columns, rows := p.screen.Size()
		p.screen.Above(p.notes, p.tally.lines(columns, rows, now)...)
		p.notes = nil
	case cli.PlainLines:
		fmt.Fprintln(p.to, p.tally.line(now))
	case cli.JSONLines:
		p.writeTotal(now)
	}
}

// End removes the lines and prints the summary. It may be called more than once.
func (p *Progress) End() {
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return
	}
	p.ended = true
	close(p.stop)
	if p.style == cli.OnTerminal {
		p.screen.Above(p.notes)
	}
	if p.tally.complete() {
		switch now := p.now(); p.style {
		case cli.OnTerminal, cli.PlainLines:
			fmt.Fprintln(p.to, p.tally.summary(now))
		case cli.JSONLines:
			p.writeEnd(now)
		}
	}
	p.mu.Unlock()
	p.drawn.Wait()
}

// ResultJSON is the result of a push or pull.
type ResultJSON struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // of the manifest
	Counts
}

// blobJSON is an event of one blob: begin, retry, done, present, mounted or skipped. A plan event has only the size. A
// warning event has the registry's name and its message, a paused event the host's name and how long it is waited for.
type blobJSON struct {
	Event      registry.EventKind `json:"event"`
	Digest     string             `json:"digest,omitempty"`
	Name       string             `json:"name,omitempty"`
	Bytes      int64              `json:"bytes"` // transferred so far
	TotalBytes int64              `json:"total_bytes"`
	Seconds    float64            `json:"seconds,omitempty"`
	Error      string             `json:"error,omitempty"`
}

// totalJSON is the progress event of the whole operation, once per second.
type totalJSON struct {
	Event      string  `json:"event"`
	Bytes      int64   `json:"bytes"`
	TotalBytes int64   `json:"total_bytes"`
	Blobs      int     `json:"blobs"`  // finished
	Active     int     `json:"active"` // in transfer
	Rate       float64 `json:"bytes_per_second"`
	Left       float64 `json:"seconds_left"` // 0 if unknown
}

// endJSON is the last event, after all blobs are finished.
type endJSON struct {
	Event string `json:"event"`
	Counts
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"bytes_per_second"`
}

func (p *Progress) writeBlob(e registry.Event) {
	line := blobJSON{Event: e.Kind, Digest: string(e.Digest), Name: e.Name, Bytes: e.Bytes, TotalBytes: e.Total,
		Seconds: e.Wait.Seconds()}
	switch e.Kind {
	case registry.Moved: // the progress event covers this
		return
	case registry.Retry:
		if b := p.tally.moving[e.Digest]; b != nil {
			line.Bytes, line.TotalBytes = b.bytes, b.size
		}
	case registry.Done, registry.Present, registry.Mounted:
		line.Bytes = e.Total
	}
	if e.Err != nil {
		line.Error = e.Err.Error()
	}
	cli.WriteJSONLine(p.to, line)
}

func (p *Progress) writeTotal(now time.Time) {
	t := p.tally
	left, _ := t.left(now)
	rate := t.moved.rate(now)
	cli.WriteJSONLine(p.to, totalJSON{"progress", t.there(), t.total, t.Blobs, len(t.moving), rate, left.Seconds()})
}

func (p *Progress) writeEnd(now time.Time) {
	t := p.tally
	seconds := now.Sub(t.begun).Seconds()
	cli.WriteJSONLine(p.to, endJSON{"end", t.Counts, seconds, float64(t.moved.total) / max(seconds, 1e-3)})
}
