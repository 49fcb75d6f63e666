package readahead

import "slices"

// fetcher requests segments until the reader ends.
func (r *Reader) fetcher() {
	defer r.work.Done()
	for {
		s, buf := r.next()
		if s == nil {
			return
		}
		if err := r.fetch(r.ctx, s.File, buf, s.Begin); err != nil {
			r.fail(err)
			return
		}
		r.mu.Lock()
		if r.err != nil {
			r.mu.Unlock()
			return
		}
		s.data, s.state = buf, ready
		close(s.ready)
		r.advance(s)
		r.release(s)
		r.mu.Unlock()
	}
}

// next waits for a segment to request: one that a reader waits for, or else the first that fits the window. It returns
// nil at the end.
func (r *Reader) next() (*segment, []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.closed {
		for len(r.demanded) > 0 {
			s := r.demanded[0]
			r.demanded = r.demanded[1:]
			if s.state == queued {
				return s, r.take(s)
			}
		}
		for len(r.queue) > 0 && r.queue[0].state != queued {
			r.queue = r.queue[1:]
		}
		if len(r.queue) > 0 {
			s := r.queue[0]
			if r.used == 0 || r.used+s.End-s.Begin <= r.window {
				r.queue = r.queue[1:]
				return s, r.take(s)
			}
		}
		r.changed.Wait()
	}
	return nil, nil
}

// take marks a segment as requested and returns its buffer. The caller holds the lock.
func (r *Reader) take(s *segment) []byte {
	s.state = requested
	n := s.End - s.Begin
	r.used += n
	if last := len(r.free) - 1; n == r.segment && last >= 0 {
		buf := r.free[last]
		r.free = r.free[:last]
		return buf
	}
	return make([]byte, n)
}

// advance hashes what a new segment completes. The caller holds the lock.
func (r *Reader) advance(s *segment) {
	c := r.checks[s.File]
	if c == nil || s.hashed {
		return
	}
	c.waiting[s.Begin] = s
	if c.busy || c.waiting[c.frontier] == nil {
		return
	}
	c.busy = true
	r.work.Go(func() { r.hash(c) })
}

// hash hashes ready segments at a file's frontier, until one is missing.
func (r *Reader) hash(c *check) {
	r.mu.Lock()
	for {
		s := c.waiting[c.frontier]
		if s == nil || r.err != nil {
			c.busy = false
			r.mu.Unlock()
			return
		}
		delete(c.waiting, c.frontier)
		r.mu.Unlock()
		c.hash.Write(s.data) // not released before it is hashed
		r.mu.Lock()
		s.hashed = true
		c.frontier = s.End
		r.release(s)
		if c.frontier < c.size {
			continue
		}
		have := c.hash.Sum(nil)
		c.busy = false
		if !slices.Equal(have, c.want[:]) {
			r.mu.Unlock()
			r.fail(&MismatchError{File: c.file, Have: [32]byte(have), Want: c.want})
			return
		}
		if r.err == nil {
			close(c.done)
		}
		r.mu.Unlock()
		return
	}
}
