package readahead

import (
	"context"
	"crypto/sha256"
	"slices"
)

// Check announces that a file's SHA-256 is to be compared, if its bytes all pass. It has to be called before the
// [Reader.Expect] that announces the file's ranges.
func (r *Reader) Check(file string, size int64, want [sha256.Size]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.checks[file] == nil && size > 0 && r.err == nil {
		r.checks[file] = &check{
			file: file, size: size, want: want, hash: sha256.New(), waiting: map[int64]*segment{}, done: make(chan struct{}),
		}
	}
}

// Expect announces ranges that will be read once each, in this order, after those that were announced before.
func (r *Reader) Expect(list []Range) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	p := planner{r: r, unread: list}
	p.cutOverlaps()
	p.fillGaps()
	p.split()
	p.dropChecks()
	for _, s := range p.segments {
		c := r.checks[s.File]
		if s.hashed = c == nil || !c.tiled; s.hashed && s.unread == 0 {
			continue // it was only for a checksum that cannot be computed
		}
		r.queue = append(r.queue, s)
		r.active[s.File] = append(r.active[s.File], s)
	}
	for _, list := range r.active {
		slices.SortFunc(list, func(a, b *segment) int { return compareInt(a.Begin, b.Begin) })
	}
	r.start()
}

// start starts the fetchers. The caller holds the lock.
func (r *Reader) start() {
	if !r.started {
		r.started = true
		for range r.opts.Connections {
			r.work.Add(1)
			go r.fetcher()
		}
	}
	r.changed.Broadcast()
}

// Wait waits until the checked files are hashed, and returns an error if one differs. With [Options.All], files that
// could not be hashed on the way are read again. It is called when all reads are done.
func (r *Reader) Wait(ctx context.Context) error {
	r.mu.Lock()
	var wait []*check
	for _, c := range r.checks {
		if c.tiled {
			wait = append(wait, c)
		} else if r.opts.All && r.err == nil {
			wait = append(wait, c)
			r.readAgain(c)
		}
	}
	r.mu.Unlock()
	for _, c := range wait {
		select {
		case <-c.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return r.failed()
}

// readAgain queues a whole file only for its checksum. The caller holds the lock.
func (r *Reader) readAgain(c *check) {
	c.tiled = true
	var list []*segment
	for at := int64(0); at < c.size; at += r.segment {
		list = append(list, newSegment(Range{c.file, at, min(at+r.segment, c.size)}, 0))
	}
	// Nobody reads them, so what is left of the file is released only by this.
	for _, s := range slices.Clone(r.active[c.file]) {
		s.unread = 0
		r.release(s)
	}
	r.queue = append(r.queue, list...)
	r.active[c.file] = list
	r.start()
}

// Unchecked returns the files that were announced with [Reader.Check] and cannot be checked, because some of their
// bytes are not read, or in an order that would need too much memory.
func (r *Reader) Unchecked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, c := range r.checks {
		if !c.tiled && !r.opts.All {
			out = append(out, c.file)
		}
	}
	slices.Sort(out)
	return out
}

func newSegment(at Range, unread int64) *segment {
	return &segment{Range: at, unread: unread, ready: make(chan struct{})}
}

// planner turns announced ranges into segments.
type planner struct {
	r        *Reader
	unread   []Range // announced
	ranges   []part
	segments []*segment
}

// part is a range, and how many of its bytes will be read.
type part struct {
	Range
	unread int64
}

// cutOverlaps drops ranges that overlap earlier ones: each byte is in one segment, and what is read again is requested
// again.
func (p *planner) cutOverlaps() {
	taken := map[string][]Range{}
	for file, list := range p.r.active {
		for _, s := range list {
			taken[file] = append(taken[file], s.Range)
		}
	}
	for _, g := range p.unread {
		list := taken[g.File]
		i, _ := slices.BinarySearchFunc(list, g.Begin, func(t Range, at int64) int { return compareInt(t.Begin, at) })
		if g.Begin >= g.End || i > 0 && list[i-1].End > g.Begin || i < len(list) && list[i].Begin < g.End {
			continue
		}
		taken[g.File] = slices.Insert(list, i, g)
		p.ranges = append(p.ranges, part{g, g.End - g.Begin})
	}
}

// A file is checked if no more than this many bytes of it, or this share, are read only for that: its header, and small
// tensors that nobody needs.
const (
	maxOther      = 1 << 20
	maxOtherShare = 64
)

// fillGaps adds the bytes of checked files that nobody announced. A gap comes just before the range that follows it in
// the file.
func (p *planner) fillGaps() {
	byFile := map[string][]Range{}
	for _, g := range p.ranges {
		byFile[g.File] = append(byFile[g.File], g.Range)
	}
	before := map[Range][]part{} // gaps, by the range that follows
	last := map[string]part{}    // gap at the end
	for file, list := range byFile {
		c := p.r.checks[file]
		if c == nil || c.tiled || len(p.r.active[file]) > 0 {
			continue
		}
		slices.SortFunc(list, func(a, b Range) int { return compareInt(a.Begin, b.Begin) })
		at, other := int64(0), int64(0)
		for _, g := range list {
			if g.Begin > at {
				before[g] = append(before[g], part{Range{file, at, g.Begin}, 0})
				other += g.Begin - at
			}
			at = g.End
		}
		if at < c.size {
			last[file] = part{Range{file, at, c.size}, 0}
			other += c.size - at
		}
		c.tiled = p.r.opts.All || other <= max(maxOther, c.size/maxOtherShare)
	}
	left := map[string]int{}
	for _, g := range p.ranges {
		left[g.File]++
	}
	var out []part
	for _, g := range p.ranges {
		tiled := p.r.checks[g.File] != nil && p.r.checks[g.File].tiled
		if tiled {
			out = append(out, before[g.Range]...)
		}
		out = append(out, g)
		if left[g.File]--; left[g.File] == 0 && tiled {
			if end, ok := last[g.File]; ok {
				out = append(out, end)
			}
		}
	}
	p.ranges = out
}

// split makes segments: adjacent ranges are joined, long ones divided.
func (p *planner) split() {
	var s *segment
	for _, g := range p.ranges {
		for g.Begin < g.End {
			if s == nil || s.File != g.File || s.End != g.Begin || s.End-s.Begin >= p.r.segment {
				s = newSegment(Range{g.File, g.Begin, g.Begin}, 0)
				p.segments = append(p.segments, s)
			}
			n := min(g.End-g.Begin, p.r.segment-(s.End-s.Begin))
			s.End += n
			if g.unread > 0 {
				s.unread += n
			}
			g.Begin += n
		}
	}
}

// dropChecks gives up checksums of files that are read in an order for which too much would have to be held: what
// arrives before the frontier waits in memory.
func (p *planner) dropChecks() {
	type progress struct {
		frontier, held int64
		early          map[int64]int64 // end by begin
	}
	files := map[string]*progress{}
	for _, s := range p.segments {
		c := p.r.checks[s.File]
		if c == nil || !c.tiled {
			continue
		}
		f := files[s.File]
		if f == nil {
			f = &progress{early: map[int64]int64{}}
			files[s.File] = f
		}
		f.early[s.Begin] = s.End
		f.held += s.End - s.Begin
		for end, ok := f.early[f.frontier]; ok; end, ok = f.early[f.frontier] {
			delete(f.early, f.frontier)
			f.held -= end - f.frontier
			f.frontier = end
		}
		if f.held > p.r.window/4 {
			c.tiled = false
		}
	}
}

func compareInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
