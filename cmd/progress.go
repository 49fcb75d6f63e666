package cmd

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progress shows how far a piece of work is: a line that is rewritten on a terminal, nothing elsewhere.
type progress struct {
	to    io.Writer // nil shows nothing
	what  string
	begun time.Time
	shown time.Time
}

// progressEvery is how often a terminal's line is rewritten.
const progressEvery = 100 * time.Millisecond

func (a *app) progress(what string) *progress {
	p := &progress{what: what, begun: time.Now()}
	if f, ok := a.err.(*os.File); ok && !a.quiet && term.IsTerminal(int(f.Fd())) {
		p.to = f
	}
	return p
}

func (p *progress) set(done, total int64) {
	now := time.Now()
	if p.to == nil || (now.Sub(p.shown) < progressEvery && done < total) {
		return
	}
	p.shown = now
	rate := float64(done) / max(now.Sub(p.begun).Seconds(), 1e-3)
	fmt.Fprintf(p.to, "\r\x1b[K%s %s of %s, %s/s", p.what, size(done), size(total), size(int64(rate)))
}

// end clears the line.
func (p *progress) end() {
	if p.to != nil && !p.shown.IsZero() {
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
