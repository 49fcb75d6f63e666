package cmd

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/registry"
)

// transferProgress shows how far a push or pull is: on a terminal a line for each blob under way and one for the whole, elsewhere
// the whole now and then, or lines of JSON. Its set takes the events of one operation; end, after which nothing is shown, says what
// moved and what did not have to. An operation that failed has no such last word.
type transferProgress struct {
	to     io.Writer
	style  progressStyle
	screen *screen
	now    func() time.Time

	mu    sync.Mutex
	tally *tally
	told  map[string]bool // the blobs whose first retry was told
	notes []string        // to be shown above the lines of a terminal
	ended bool
	stop  chan struct{}
	drawn sync.WaitGroup
}

// transferProgress begins to show a push or pull; verb is one of these words.
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

func newTransferProgress(to io.Writer, verb string, style progressStyle, s *screen, now func() time.Time) *transferProgress {
	return &transferProgress{to: to, style: style, screen: s, now: now, tally: newTally(verb, now()), told: map[string]bool{}, stop: make(chan struct{})}
}

// set takes note of an event.
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
		p.tellProgram(e)
	case e.Kind == registry.Warned && e.Err != nil:
		p.note(warning(e), warning(e))
	case e.Kind == registry.Waiting:
		p.note("waiting "+string(e.Digest), fmt.Sprintf("waiting for another process that fetches %s", blobName(e)))
	case e.Kind == registry.Retry && e.Err != nil:
		p.note(string(e.Digest)+e.Name, fmt.Sprintf("trying %s again: %v", blobName(e), e.Err))
	}
}

// counts is what came of it so far.
func (p *transferProgress) counts() transferCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tally.transferCounts
}

// note tells something once for each key.
func (p *transferProgress) note(key, text string) {
	if p.told[key] {
		return
	}
	p.told[key] = true
	if p.style == onTerminal {
		p.notes = append(p.notes, text)
		return
	}
	fmt.Fprintln(p.to, terminal.Line(text))
}

// draw shows how far it is now.
func (p *transferProgress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || !p.tally.planned {
		return
	}
	now := p.now()
	switch p.style {
	case onTerminal:
		columns, rows := p.screen.size()
		p.screen.above(p.notes, p.tally.lines(columns, rows, now)...)
		p.notes = nil
	case plainLines:
		fmt.Fprintln(p.to, p.tally.line(now))
	case jsonLines:
		p.tellWhole(now)
	}
}

// end takes the lines away and tells what came of it. It may be called again.
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
			p.tellEnd(now)
		}
	}
	p.mu.Unlock()
	p.drawn.Wait()
}

// transferJSON is what a push or pull did.
type transferJSON struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // of the manifest
	transferCounts
}

// blobJSON is an event of a blob for programs: begin, retry, done, present, mounted or skipped. For plan it has the size alone, for
// warning the registry's name and what it says.
type blobJSON struct {
	Event      registry.EventKind `json:"event"`
	Digest     string             `json:"digest,omitempty"`
	Name       string             `json:"name,omitempty"`
	Bytes      int64              `json:"bytes"` // of it that are there
	TotalBytes int64              `json:"total_bytes"`
	Error      string             `json:"error,omitempty"`
}

// wholeJSON is how far the whole is, every second: progress.
type wholeJSON struct {
	Event      string  `json:"event"`
	Bytes      int64   `json:"bytes"`
	TotalBytes int64   `json:"total_bytes"`
	Blobs      int     `json:"blobs"`  // that are through
	Active     int     `json:"active"` // that are under way
	Rate       float64 `json:"bytes_per_second"`
	Left       float64 `json:"seconds_left"` // 0 when it cannot be told
}

// endJSON is the last line, when all blobs are through: end.
type endJSON struct {
	Event string `json:"event"`
	transferCounts
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"bytes_per_second"`
}

func (p *transferProgress) tellProgram(e registry.Event) {
	line := blobJSON{Event: e.Kind, Digest: string(e.Digest), Name: e.Name, Bytes: e.Bytes, TotalBytes: e.Total}
	switch e.Kind {
	case registry.Moved: // progress tells it, every second
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

func (p *transferProgress) tellWhole(now time.Time) {
	t := p.tally
	left, _ := t.left(now)
	writeJSONLine(p.to, wholeJSON{"progress", t.there(), t.total, t.Blobs, len(t.moving), t.moved.rate(now), left.Seconds()})
}

func (p *transferProgress) tellEnd(now time.Time) {
	t := p.tally
	seconds := now.Sub(t.begun).Seconds()
	writeJSONLine(p.to, endJSON{"end", t.transferCounts, seconds, float64(t.moved.total) / max(seconds, 1e-3)})
}
