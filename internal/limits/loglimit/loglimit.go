// Package loglimit bounds the lines that a log gets, so that clients who cause lines cannot fill it.
//
// Contract:
//   - Lines of one format are a kind. A kind has limits.LogLines lines in limits.LogInterval seconds; the rest are
//     counted, and one line at the interval's end has the number and the last of them.
//   - A line has at most limits.LogLine bytes.
//   - A Log is safe for concurrent use. It may print from another goroutine until Close returns.
package loglimit

import (
	"fmt"
	"sync"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/clip"
)

const interval = limits.LogInterval * time.Second

// Print prints a line, as fmt.Printf does.
type Print = func(format string, args ...any)

// Log prints lines within bounds.
type Log struct {
	print Print

	mu     sync.Mutex
	kinds  map[string]*kind // by format
	closed bool
}

// kind has the lines of a format in the current interval.
type kind struct {
	lines int
	more  int    // that were not printed
	last  string // of these
	end   *time.Timer
}

// New returns a log that prints with print.
func New(print Print) *Log { return &Log{print: print, kinds: map[string]*kind{}} }

// Printf prints a line, or counts it.
func (l *Log) Printf(format string, args ...any) {
	text := clip.Bytes(fmt.Sprintf(format, args...), limits.LogLine)
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kinds[format]
	if k == nil && !l.closed {
		k = &kind{}
		l.kinds[format] = k
		k.end = time.AfterFunc(interval, func() { l.endInterval(format, k) })
	}
	switch {
	case k == nil:
		l.print("%s", text)
	case k.lines < limits.LogLines:
		k.lines++
		l.print("%s", text)
	default:
		k.more++
		k.last = text
	}
}

func (l *Log) endInterval(format string, k *kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kinds[format] == k {
		delete(l.kinds, format)
		l.report(k)
	}
}

func (l *Log) report(k *kind) {
	if k.more > 0 {
		l.print("%d more lines like this one in the last %d s: %s", k.more, limits.LogInterval, k.last)
	}
}

// Close prints what was counted. Later lines are printed without bounds.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, k := range l.kinds {
		k.end.Stop()
		l.report(k)
	}
	clear(l.kinds)
}
