package fetch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ingotml/ingot/manifest/store/ingest"
	"golang.org/x/sync/errgroup"
)

// errSlow is the reason for a hedged request.
var errSlow = errors.New("a part is much slower than the others: requested again")

// fetchParallel fetches the missing bytes in parts, with several requests at a time. The first part goes ahead. If its
// response shows that the server does not support range requests, fetchParallel sends no others and returns
// errNoRanges.
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
	for range min(len(set.parts), cap(d.fetcher.RequestSlots)) {
		g.Go(func() error {
			for pt := range queue {
				if err := acquire(ctx, d.fetcher.RequestSlots); err != nil {
					return err
				}
				err := d.fetchPart(ctx, pt)
				<-d.fetcher.RequestSlots
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// split divides the missing ranges into parts of equal size, except for the last part of each range.
func (d *download) split() *partSet {
	set := &partSet{rangesConfirmed: make(chan struct{}), tick: max(d.fetcher.Tune.Stall/10, time.Millisecond)}
	size := min(max(d.blob.Size/16, d.fetcher.Tune.MinPart), d.fetcher.Tune.MaxPart)
	for _, r := range d.partial.Missing() {
		for at := r.Start; at < r.End; at += size {
			set.parts = append(set.parts, &part{set: set, offset: at, end: min(at+size, r.End), hedge: make(chan struct{}, 1)})
		}
	}
	return set
}

// fetchPart fetches a part. If it turns out to be slow, fetchPart sends a hedged request: a second one from the current
// offset on. The first of the two to reach the end cancels the other.
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
					<-results // nothing writes to the part after this
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

// fetchRest requests the rest of a part until it is complete.
func (d *download) fetchRest(ctx context.Context, pt *part) error {
	a := d.attempts()
	for {
		rest := pt.rest()
		if rest.Len() == 0 {
			return nil
		}
		err := d.getRange(ctx, rest, pt, func(b []byte, offset int64) (int, error) { return pt.write(d.partial, b, offset) })
		got := pt.rest().Start - rest.Start
		a.Progress(got)
		if errors.Is(err, errNoRanges) {
			return err
		}
		if err == nil {
			err = enough(got, rest)
		}
		if err == nil {
			continue
		}
		if err = a.Backoff(ctx, err); err != nil {
			return err
		}
	}
}

// partSet is all parts of a blob.
type partSet struct {
	parts           []*part
	rangesConfirmed chan struct{} // closed after the first response with a part
	once            sync.Once
	tick            time.Duration // interval between progress checks

	mu   sync.Mutex
	etag string
}

// part is a range of a blob that is being fetched.
type part struct {
	set   *partSet
	hedge chan struct{} // gets one value if the part is much slower than the others

	mu        sync.Mutex
	offset    int64 // of the next byte
	end       int64
	begun     bool
	ended     bool
	moved     int64   // bytes received
	ticks     int     // progress checks since begun
	lastMoved int64   // moved at the last check
	rate      float64 // bytes per tick, a moving average
	hedged    bool    // hedge got its value
}

// sameContent reports whether a response has the same ETag as earlier ones; a missing ETag matches any. pt is nil for
// blobs that are not fetched in parts.
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

// confirmRanges records that the server supports range requests.
func (pt *part) confirmRanges() {
	if pt != nil {
		pt.set.once.Do(func() { close(pt.set.rangesConfirmed) })
	}
}

func (pt *part) rest() ingest.Range {
	pt.mu.Lock()
	defer pt.mu.Unlock()
	return ingest.Range{Start: pt.offset, End: pt.end}
}

// write writes the bytes that are new. A hedged part has two requests, and the slower one repeats bytes.
func (pt *part) write(to *ingest.Partial, b []byte, offset int64) (int, error) {
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
	if pt.ticks == 0 { // finished before the first check
		pt.ticks, pt.rate = 1, float64(pt.moved)
	}
}

// A part is slow if its rate times slowFactor is below the median rate. Parts are compared after hedgeMinTicks, and
// only if there are at least hedgeMinPeers others.
const (
	hedgeMinTicks = 5
	hedgeMinPeers = 2
	slowFactor    = 5
)

// watch checks the parts at every tick, and signals those that are slow.
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
