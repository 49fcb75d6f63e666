package registry

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ingotml/ingot/manifest"
	"golang.org/x/sync/errgroup"
)

// errSlow says why a part is asked for a second time.
var errSlow = errors.New("a part is much slower than others: asked for again")

// inParts fetches what is missing by several requests at once, each for a part. The first one goes ahead: a server that does not
// serve parts, an errNoRanges, is asked for no more of them.
func (d *download) fetchParallel(ctx context.Context) error {
	set := d.split()
	if len(set.parts) == 0 {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go set.watch(watching)
	queue := make(chan *part)
	g.Go(func() error {
		defer close(queue)
		for i, pt := range set.parts {
			if i == 1 {
				select {
				case <-set.rangesConfirmed:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			select {
			case queue <- pt:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for range min(len(set.parts), cap(d.requestSlots)) {
		g.Go(func() error {
			for pt := range queue {
				if err := acquire(ctx, d.requestSlots); err != nil {
					return err
				}
				err := d.fetchPart(ctx, pt)
				<-d.requestSlots
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// split makes parts of what is missing, of equal size but for the last of each gap.
func (d *download) split() *partSet {
	set := &partSet{rangesConfirmed: make(chan struct{}), tick: max(d.tune.stallTimeout/10, time.Millisecond)}
	size := min(max(d.Size/16, d.tune.minPart), d.tune.maxPart)
	for _, r := range d.partial.Missing() {
		for at := r.Start; at < r.End; at += size {
			set.parts = append(set.parts, &part{set: set, offset: at, end: min(at+size, r.End), hedge: make(chan struct{}, 1)})
		}
	}
	return set
}

// onePart fetches a part. When it turns out to be slow, a second request starts where the first one is, and both go on: the
// first to reach the end ends the other.
func (d *download) fetchPart(ctx context.Context, pt *part) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, 2)
	request := func() { results <- d.fetchRest(ctx, pt) }
	pt.begin()
	go request()
	for running := 1; ; {
		select {
		case err := <-results:
			running--
			whole := pt.rest().Len() == 0
			if whole {
				pt.finish()
			}
			if whole || running == 0 {
				cancel()
				for range running {
					<-results // nothing writes after this
				}
				if whole {
					return nil
				}
				return err
			}
		case <-pt.hedge:
			d.emit(Event{Kind: Retry, Bytes: d.partial.Have(), Err: errSlow})
			go request()
			running++
		}
	}
}

// repeat asks for the rest of a part until it is there.
func (d *download) fetchRest(ctx context.Context, pt *part) error {
	a := d.attempts()
	for {
		rest := pt.rest()
		if rest.Len() == 0 {
			return nil
		}
		err := d.getRange(ctx, rest, pt, func(b []byte, offset int64) (int, error) { return pt.write(d.partial, b, offset) })
		if pt.rest().Start > rest.Start {
			a.reset()
		}
		if err == nil {
			continue
		}
		if errors.Is(err, errNoRanges) {
			return err
		}
		if err = a.backoff(ctx, err); err != nil {
			return err
		}
	}
}

// partSet is all the parts of a blob.
type partSet struct {
	parts           []*part
	rangesConfirmed chan struct{} // closed when an answer with a part has come
	once            sync.Once
	tick            time.Duration // how often the parts are looked at

	mu   sync.Mutex
	etag string
}

// part is a part of a blob that is being fetched, from at on.
type part struct {
	set   *partSet
	hedge chan struct{} // gets one token, when the part is much slower than others

	mu        sync.Mutex
	offset    int64
	end       int64
	begun     bool
	ended     bool
	moved     int64   // bytes since begun
	ticks     int     // of the watch since begun
	lastMoved int64   // moved at the last of them
	rate      float64 // bytes per tick, lately
	hedged    bool    // slow got its token
}

// sameContent reports whether an answer is about the same content as those before, as far as they say. part may be nil, for
// blobs that come in one piece.
func (pt *part) sameContent(etag string) bool {
	if pt == nil || etag == "" {
		return true
	}
	pt.set.mu.Lock()
	defer pt.set.mu.Unlock()
	if pt.set.etag == "" {
		pt.set.etag = etag
	}
	return pt.set.etag == etag
}

// answered says that the server does serve parts.
func (pt *part) confirmRanges() {
	if pt != nil {
		pt.set.once.Do(func() { close(pt.set.rangesConfirmed) })
	}
}

func (pt *part) rest() manifest.Range {
	pt.mu.Lock()
	defer pt.mu.Unlock()
	return manifest.Range{Start: pt.offset, End: pt.end}
}

// write writes what is new of what a request has brought: of two requests, one is behind.
func (pt *part) write(to *manifest.Partial, b []byte, offset int64) (int, error) {
	pt.mu.Lock()
	defer pt.mu.Unlock()
	behind := pt.offset - offset
	if behind >= int64(len(b)) {
		return len(b), nil
	}
	if _, err := to.WriteAt(b[behind:], pt.offset); err != nil {
		return 0, err
	}
	pt.offset += int64(len(b)) - behind
	pt.moved += int64(len(b)) - behind
	return len(b), nil
}

func (pt *part) begin() {
	pt.mu.Lock()
	defer pt.mu.Unlock()
	pt.begun = true
}

func (pt *part) finish() {
	pt.mu.Lock()
	defer pt.mu.Unlock()
	pt.ended = true
	if pt.ticks == 0 { // too fast to be seen
		pt.ticks, pt.rate = 1, float64(pt.moved)
	}
}

// How many ticks a part runs before it is judged, how many others it is compared with at least, and how many times slower
// than their median is slow.
const (
	hedgeMinTicks = 5
	hedgeMinPeers = 2
	slowFactor    = 5
)

// watch looks at the parts at every tick, and tells those that are much slower than the median of the others.
func (s *partSet) watch(ctx context.Context) {
	t := time.NewTicker(s.tick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.hedgeSlow()
		case <-ctx.Done():
			return
		}
	}
}

func (s *partSet) hedgeSlow() {
	type state struct {
		pt     *part
		rate   float64
		active bool
	}
	var list []state
	for _, pt := range s.parts {
		pt.mu.Lock()
		active := pt.begun && !pt.ended
		if active {
			pt.ticks++
			pt.rate += (float64(pt.moved-pt.lastMoved) - pt.rate) * max(0.3, 1/float64(pt.ticks))
			pt.lastMoved = pt.moved
		}
		if pt.ticks > 0 {
			list = append(list, state{pt, pt.rate, active && pt.ticks >= hedgeMinTicks && !pt.hedged})
		}
		pt.mu.Unlock()
	}
	if len(list) <= hedgeMinPeers {
		return
	}
	slices.SortFunc(list, func(a, b state) int { return cmp.Compare(a.rate, b.rate) })
	median := list[len(list)/2].rate
	for _, l := range list {
		if l.active && l.rate*slowFactor < median {
			l.pt.mu.Lock()
			l.pt.hedged = true
			l.pt.mu.Unlock()
			l.pt.hedge <- struct{}{}
		}
	}
}
