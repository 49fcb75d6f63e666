// Package readahead reads announced ranges of remote files, with many requests in flight.
//
// A [Reader] is told which ranges will be read, in which order. It requests them ahead, in segments of a few MiB, and
// serves reads from memory. Files whose bytes all pass are hashed on the way, each along its own frontier.
//
// Contract:
//   - Any range may be read at any time; one that was not announced, or is read again, is requested when it is read.
//   - Memory is bounded by [Options.Memory], except that a segment which a reader waits for is always requested. So a
//     reader cannot wait for memory that another one holds.
//   - The first error of the source ends all reads.
//   - A file whose SHA-256 differs is an error of [Reader.Wait], and of reads after it was found.
package readahead

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"
	"sync"
)

// Fetch fills p with the bytes of a file at an offset. It is called by several goroutines at a time.
type Fetch func(ctx context.Context, file string, p []byte, offset int64) error

// Options configure a [Reader].
type Options struct {
	Memory      int64 // in bytes; 0 = 64 MiB
	Connections int   // requests in flight; 0 = 8
	// All reads the bytes of checked files that nobody announced, however many. Otherwise a file with more than a few of
	// them is not checked.
	All bool
}

// Range is a range of bytes of a file.
type Range struct {
	File       string
	Begin, End int64
}

// MismatchError is a file whose SHA-256 is not the expected one.
type MismatchError struct {
	File       string
	Have, Want [sha256.Size]byte
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: its SHA-256 is %x, not %x", e.File, e.Have, e.Want)
}

// Mismatch returns the [MismatchError] in an error.
func Mismatch(err error) (*MismatchError, bool) {
	var m *MismatchError
	return m, errors.As(err, &m)
}

const (
	defaultMemory      = 64 << 20
	defaultConnections = 8
	maxSegment         = 4 << 20
	minSegment         = 64 << 10
)

// Reader reads ahead. It is safe for concurrent use.
type Reader struct {
	fetch   Fetch
	opts    Options
	segment int64 // bytes of a full segment
	window  int64 // bytes of segments that are requested or wait to be read
	ctx     context.Context
	cancel  context.CancelCauseFunc

	mu       sync.Mutex
	changed  *sync.Cond // work for fetchers, or the end
	started  bool
	closed   bool
	queue    []*segment            // not requested yet, in the order of reading
	demanded []*segment            // of queue: those that a reader waits for
	active   map[string][]*segment // not released yet, by file, sorted by begin
	used     int64
	checks   map[string]*check
	err      error
	free     [][]byte // buffers of full segments
	blocks   *blocks
	work     sync.WaitGroup
}

// segment is a range that is requested as a whole.
type segment struct {
	Range
	unread  int64 // announced bytes that were not read yet
	readers int   // that copy from data
	state   state
	data    []byte
	ready   chan struct{} // closed when data is there, or the reader has failed
	hashed  bool          // or there is nothing to hash
	dropped bool
}

type state uint8

const (
	queued state = iota
	requested
	ready
)

// check hashes a file along its frontier.
type check struct {
	file     string
	size     int64
	want     [sha256.Size]byte
	hash     hash.Hash
	frontier int64
	waiting  map[int64]*segment // ready, by begin
	busy     bool               // a goroutine hashes
	tiled    bool               // the segments of the queue cover the file
	done     chan struct{}
}

// New returns a reader. ctx ends all requests.
func New(ctx context.Context, fetch Fetch, opts Options) *Reader {
	if opts.Memory <= 0 {
		opts.Memory = defaultMemory
	}
	if opts.Connections <= 0 {
		opts.Connections = defaultConnections
	}
	r := &Reader{
		fetch: fetch, opts: opts, window: opts.Memory * 3 / 4, active: map[string][]*segment{}, checks: map[string]*check{},
	}
	r.segment = max(min(r.window/int64(opts.Connections+2), maxSegment), minSegment)
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.changed = sync.NewCond(&r.mu)
	r.blocks = newBlocks(opts.Memory/4, func(file string, p []byte, offset int64) error {
		return r.fetch(r.ctx, file, p, offset)
	})
	return r
}

// Close ends all requests and waits for them. Reads fail afterwards.
func (r *Reader) Close() {
	r.fail(errors.New("the reader is closed"))
	r.cancel(nil)
	r.work.Wait()
}

// fail ends all reads with an error, unless there is one already.
func (r *Reader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	r.err, r.closed = err, true
	for _, list := range r.active {
		for _, s := range list {
			if s.state != ready {
				close(s.ready)
				s.state = ready
			}
		}
	}
	for _, c := range r.checks {
		select {
		case <-c.done:
		default:
			close(c.done)
		}
	}
	r.changed.Broadcast()
}

// ReadAt fills p with the bytes of a file, whose size is given, at an offset.
func (r *Reader) ReadAt(ctx context.Context, file string, size int64, p []byte, offset int64) error {
	for len(p) > 0 {
		s, until := r.find(file, offset)
		if s == nil {
			n := min(int64(len(p)), until-offset)
			if err := r.failed(); err != nil {
				return err
			}
			if err := r.blocks.read(ctx, file, size, p[:n], offset); err != nil {
				return err
			}
			p, offset = p[n:], offset+n
			continue
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			r.leave(s, 0)
			return context.Cause(ctx)
		}
		if err := r.failed(); err != nil || s.data == nil {
			r.leave(s, 0)
			return err
		}
		n := copy(p, s.data[offset-s.Begin:])
		r.leave(s, int64(n))
		p, offset = p[n:], offset+int64(n)
	}
	return nil
}

func (r *Reader) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// find returns the segment that holds a byte, and counts the caller as its reader. If there is none, it returns the
// offset up to which there is none.
func (r *Reader) find(file string, offset int64) (*segment, int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.active[file]
	i, found := slices.BinarySearchFunc(list, offset, func(s *segment, at int64) int {
		switch {
		case s.End <= at:
			return -1
		case s.Begin > at:
			return 1
		}
		return 0
	})
	if !found {
		if i < len(list) {
			return nil, list[i].Begin
		}
		return nil, 1<<63 - 1
	}
	s := list[i]
	s.readers++
	if s.state == queued {
		r.demanded = append(r.demanded, s)
		r.changed.Broadcast()
	}
	return s, 0
}

// leave ends a read of n bytes of a segment.
func (r *Reader) leave(s *segment, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.readers--
	s.unread -= n
	r.release(s)
}

// release drops a segment that nobody needs any more. The caller holds the lock.
func (r *Reader) release(s *segment) {
	if s.unread > 0 || s.readers > 0 || !s.hashed || s.state != ready || s.dropped {
		return
	}
	s.dropped = true
	if i := slices.Index(r.active[s.File], s); i >= 0 {
		r.active[s.File] = slices.Delete(r.active[s.File], i, i+1)
	}
	r.used -= s.End - s.Begin
	if int64(len(s.data)) == r.segment {
		r.free = append(r.free, s.data)
	}
	s.data = nil
	r.changed.Broadcast()
}
