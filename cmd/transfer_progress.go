package cmd

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/registry"
)

// transferProgress shows the progress of a push or pull. On a terminal it shows a line per active blob and a total;
// elsewhere the total from time to time, or JSON lines. set receives the events of one operation. end stops the display
// and prints a summary, unless the operation failed.
type transferProgress struct {
	to     io.Writer
	style  progressStyle
	screen *screen
	now    func() time.Time

	mu    sync.Mutex
	tally *tally
	noted map[string]bool // keys of notes that were printed
	notes []string        // to be printed above the lines of a terminal
	ended bool
	stop  chan struct{}
	drawn sync.WaitGroup
}

// transferProgress starts the display. verb is "push", "pull", "copy" or "check".
func (a *app) transferProgress(verb string, asJSON bool) *transferProgress {
	p := newTransferProgress(a.err, verb, a.progressStyle(asJSON), a.screen(), time.Now)
	if p.style == noProgress {
		return p
	}
	p.drawn.Go(func() {
		ticks := time.NewTicker(p.style.every())
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

func newTransferProgress(
	to io.Writer, verb string, style progressStyle, s *screen, now func() time.Time,
) *transferProgress {
	return &transferProgress{
		to:     to,
		style:  style,
		screen: s,
		now:    now,
		tally:  newTally(verb, now()),
		noted:  map[string]bool{},
		stop:   make(chan struct{}),
	}
}

// set handles an event.
func (p *transferProgress) set(e registry.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.tally.add(e, p.now())
	switch {
	case p.style == noProgress:
	case p.style == jsonLines:
		p.writeBlob(e)
	case e.Kind == registry.Warned && e.Err != nil:
		p.note(warning(e), warning(e))
	case e.Kind == registry.Paused:
		if p.style == plainLines && e.Wait >= noticeWait {
			fmt.Fprintf(p.to, "%s (%s)\n", paused(e.Wait), terminal.Line(e.Name))
		}
	case e.Kind == registry.Waiting:
		p.note("waiting "+string(e.Digest), fmt.Sprintf("waiting for another process that is downloading %s", blobName(e)))
	case e.Kind == registry.Retry && e.Err != nil && !p.tally.paused(p.now()):
		p.note(string(e.Digest)+e.Name, fmt.Sprintf("retrying %s: %v", blobName(e), e.Err))
	}
}

// counts returns the totals so far.
func (p *transferProgress) counts() transferCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tally.transferCounts
}

// note prints a text once per key.
func (p *transferProgress) note(key, text string) {
	if p.noted[key] {
		return
	}
	p.noted[key] = true
	if p.style == onTerminal {
		p.notes = append(p.notes, text)
		return
	}
	fmt.Fprintln(p.to, terminal.Line(text))
}

// draw shows the current progress.
func (p *transferProgress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.ended || !p.tally.planned && !p.tally.paused(now) {
		return
	}
	switch p.style {
	case onTerminal:
		columns, rows := p.screen.size()
		p.screen.above(p.notes, p.tally.lines(columns, rows, now)...)
		p.notes = nil
	case plainLines:
		fmt.Fprintln(p.to, p.tally.line(now))
	case jsonLines:
		p.writeTotal(now)
	}
}

// end removes the lines and prints the summary. It may be called more than once.
func (p *transferProgress) end() {
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return
	}
	p.ended = true
	close(p.stop)
	if p.style == onTerminal {
		p.screen.above(p.notes)
	}
	if p.tally.complete() {
		switch now := p.now(); p.style {
		case onTerminal, plainLines:
			fmt.Fprintln(p.to, p.tally.summary(now))
		case jsonLines:
			p.writeEnd(now)
		}
	}
	p.mu.Unlock()
	p.drawn.Wait()
}

// transferJSON is the result of a push or pull.
type transferJSON struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // of the manifest
	transferCounts
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
	transferCounts
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"bytes_per_second"`
}

func (p *transferProgress) writeBlob(e registry.Event) {
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
	writeJSONLine(p.to, line)
}

func (p *transferProgress) writeTotal(now time.Time) {
	t := p.tally
	left, _ := t.left(now)
	rate := t.moved.rate(now)
	writeJSONLine(p.to, totalJSON{"progress", t.there(), t.total, t.Blobs, len(t.moving), rate, left.Seconds()})
}

func (p *transferProgress) writeEnd(now time.Time) {
	t := p.tally
	seconds := now.Sub(t.begun).Seconds()
	writeJSONLine(p.to, endJSON{"end", t.transferCounts, seconds, float64(t.moved.total) / max(seconds, 1e-3)})
}
