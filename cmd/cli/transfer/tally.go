package transfer

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/registry"
	"github.com/opencontainers/go-digest"
)

// tally accumulates the events of a push or pull.
type tally struct {
	verb  string // "push", "pull", "copy" or "check"
	begun time.Time

	planned bool
	total   int64 // bytes of all blobs that are not skipped
	settled int64 // bytes of finished blobs
	moving  map[digest.Digest]*movingBlob
	slots   []*movingBlob // the active blobs by line; nil is a free line
	moved   meter         // bytes on the wire, including repeated ones
	resumes time.Time     // when a registry that limits requests is sent some again
	Counts
}

// Counts are totals of finished blobs.
type Counts struct {
	Blobs   int   `json:"blobs"`
	Moved   int64 `json:"moved_bytes"`
	Resumed int64 `json:"resumed_bytes"` // transferred by an earlier run
	Present int64 `json:"present_bytes"`
	Mounted int64 `json:"mounted_bytes"`
	Skipped int64 `json:"skipped_bytes"`
}

// movingBlob is a blob in transfer.
type movingBlob struct {
	name        string
	size, bytes int64
	resumed     int64 // transferred by an earlier run
	rate        meter
	retrying    bool // no bytes have moved since the last retry
}

func newTally(verb string, now time.Time) *tally {
	return &tally{verb: verb, begun: now, moving: map[digest.Digest]*movingBlob{}, moved: newMeter(now)}
}

func (t *tally) add(e registry.Event, now time.Time) {
	b := t.moving[e.Digest]
	switch e.Kind {
	case registry.Plan:
		t.planned = true
		t.total += e.Total
	case registry.Begin:
		if b == nil {
			b = &movingBlob{name: blobName(e), rate: newMeter(now)}
			t.moving[e.Digest] = b
			t.place(b)
		}
		b.size, b.bytes, b.resumed = e.Total, e.Bytes, e.Bytes
	case registry.Moved:
		if b == nil {
			return
		}
		if n := e.Bytes - b.bytes; n > 0 {
			b.rate.add(now, n)
			t.moved.add(now, n)
			b.retrying = false
		}
		b.bytes = e.Bytes
	case registry.Retry:
		if b != nil {
			b.retrying = true
		}
	case registry.Paused:
		t.resumes = now.Add(e.Wait)
	case registry.Done, registry.Present, registry.Mounted, registry.Skipped:
		t.settle(e, b)
	}
}

// settle counts a finished blob. b is nil if its transfer never began.
func (t *tally) settle(e registry.Event, b *movingBlob) {
	size, resumed := max(e.Total, e.Bytes), int64(0)
	if b != nil {
		size, resumed = b.size, min(b.resumed, b.size)
		delete(t.moving, e.Digest)
		for i := range t.slots {
			if t.slots[i] == b {
				t.slots[i] = nil
			}
		}
	}
	t.Blobs++
	switch e.Kind {
	case registry.Skipped:
		t.Skipped += size
		t.total -= size
		return
	case registry.Present:
		t.Present += size
	case registry.Mounted:
		t.Mounted += size
	default:
		t.Resumed += resumed
		t.Moved += size - resumed
	}
	t.settled += size
}

// place assigns a blob to the first free line, so that the other blobs keep their lines.
func (t *tally) place(b *movingBlob) {
	for i := range t.slots {
		if t.slots[i] == nil {
			t.slots[i] = b
			return
		}
	}
	t.slots = append(t.slots, b)
}

// there returns the number of bytes at the destination.
func (t *tally) there() int64 {
	n := t.settled
	for _, b := range t.moving {
		n += b.bytes
	}
	return min(n, max(t.total, 0))
}

// complete reports whether all blobs are finished.
func (t *tally) complete() bool { return t.planned && len(t.moving) == 0 && t.settled >= t.total }

// left estimates the remaining time from the current rate. It returns false if the rate is unknown.
func (t *tally) left(now time.Time) (time.Duration, bool) {
	rate := t.moved.rate(now)
	if rate < 1 {
		return 0, false
	}
	seconds := float64(t.total-t.there()) / rate
	return time.Duration(min(seconds, 1e8) * float64(time.Second)).Round(time.Second), true
}

// paused reports whether a registry limits requests.
func (t *tally) paused(now time.Time) bool { return now.Before(t.resumes) }

// line formats the total progress.
func (t *tally) line(now time.Time) string {
	switch {
	case t.paused(now) && !t.planned:
		return paused(t.resumes.Sub(now))
	case t.paused(now):
		return fmt.Sprintf("%sing %s of %s, %s", t.verb, cli.Size(t.there()), cli.Size(max(t.total, 0)),
			paused(t.resumes.Sub(now)))
	}
	text := fmt.Sprintf("%sing %s of %s, %s/s",
		t.verb, cli.Size(t.there()), cli.Size(max(t.total, 0)), cli.Size(int64(t.moved.rate(now))))
	if left, ok := t.left(now); ok {
		text += fmt.Sprintf(", %s left", left)
	}
	return text
}

// lines returns a line per active blob, as many as fit, and a line of the total.
func (t *tally) lines(columns, rows int, now time.Time) []string {
	var list []string
	more := 0
	names := 0
	for _, b := range t.slots {
		if b != nil {
			names = max(names, terminal.Columns(b.name))
		}
	}
	for _, b := range t.slots {
		switch {
		case b == nil:
		case len(list) < rows-2: // two rows remain for the total and the cursor
			list = append(list, b.line(columns, names, now))
		default:
			more++
		}
	}
	total := t.line(now)
	if note := fmt.Sprintf(", %d more blobs active", more); more > 0 && len(total)+len(note) < columns {
		total += note
	}
	if t.planned && columns > len(total)+barColumns+8 { // a margin, so that the bar does not flicker
		total = bar(t.there(), t.total) + "  " + total
	}
	return append(list, total)
}

// Minimum widths of the terminal for the bar and the byte counts, and the width of the bar.
const (
	columnsForBar   = 90
	columnsForBytes = 56
	barColumns      = 22
)

// line formats a blob: its name, padded to names columns if they fit, and its progress.
func (b *movingBlob) line(columns, names int, now time.Time) string {
	facts := percent(b.bytes, b.size)
	if columns >= columnsForBytes {
		state := cli.Size(int64(b.rate.rate(now))) + "/s"
		if b.retrying {
			state = "retrying"
		}
		facts += fmt.Sprintf("  %17s  %9s", cli.Size(b.bytes)+" of "+cli.Size(b.size), state)
	}
	if columns >= columnsForBar {
		facts = bar(b.bytes, b.size) + " " + facts
	}
	room := min(names, max(8, columns-1-len(facts)-2))
	name := cli.Cut(b.name, room)
	return name + strings.Repeat(" ", room-terminal.Columns(name)) + "  " + facts
}

func bar(done, of int64) string {
	const n = barColumns - 2
	full := n
	if of > 0 {
		full = int(min(max(float64(done)/float64(of), 0), 1) * n)
	}
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", n-full) + "]"
}

func percent(done, of int64) string {
	if of <= 0 {
		return "100%"
	}
	return fmt.Sprintf("%3d%%", int(min(max(float64(done)/float64(of), 0), 1)*100))
}

// summary describes the result.
func (t *tally) summary(now time.Time) string {
	where, done := "in the store", t.verb+"ed"
	switch t.verb {
	case "push":
		where = "in the registry"
	case "copy":
		where, done = "there", "copied"
	}
	var parts []string
	if took := now.Sub(t.begun); t.Moved > 0 {
		rate := float64(t.moved.total) / max(took.Seconds(), 1e-3)
		parts = append(parts, fmt.Sprintf("%s %s in %s, %s/s", done, cli.Size(t.Moved), roundly(took), cli.Size(int64(rate))))
	} else {
		parts = append(parts, "nothing to "+t.verb)
	}
	for _, p := range []struct {
		bytes int64
		what  string
	}{
		{t.Resumed, "transferred by an earlier run"},
		{t.Mounted, "mounted from other repositories"},
		{t.Present, "already " + where},
		{t.Skipped, "left out"},
	} {
		if p.bytes > 0 {
			parts = append(parts, cli.Size(p.bytes)+" "+p.what)
		}
	}
	return strings.Join(parts, "; ")
}

func roundly(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// blobName returns a blob's name for people. Names come from manifests, which are untrusted.
func blobName(e registry.Event) string {
	return cmp.Or(terminal.Line(e.Name), fmt.Sprintf("%.19s", e.Digest), "the manifest")
}
