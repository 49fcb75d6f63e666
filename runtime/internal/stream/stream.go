// Package stream provides a queue from a producer, which never blocks, to one reader.
//
// Without a [Bound], the queue has no limit of its own: its users have one, such as the number of tokens of a request.
package stream

import (
	"context"
	"sync"
)

// Stream holds the elements that were put and not yet taken. Its methods are safe for concurrent use.
type Stream[E any] struct {
	bound Bound[E]

	mu    sync.Mutex
	list  []E
	size  int64 // of list
	ended bool
	err   error
	news  chan struct{} // signals that something was put; capacity 1
}

// Bound limits what a reader leaves in a stream. The zero value is no limit.
type Bound[E any] struct {
	Most int64 // bytes
	Size func(E) int64
	Err  error // ends the stream, behind what fits
}

// New returns an empty stream.
func New[E any]() *Stream[E] { return Bounded(Bound[E]{}) }

// Bounded returns an empty stream with a bound.
func Bounded[E any](b Bound[E]) *Stream[E] { return &Stream[E]{bound: b, news: make(chan struct{}, 1)} }

// Put adds an element, unless the stream has ended. It reports false if the element exceeded the bound, which ended the
// stream.
func (s *Stream[E]) Put(e E) bool {
	s.mu.Lock()
	defer s.ring()
	defer s.mu.Unlock()
	if s.ended {
		return true
	}
	if s.bound.Size != nil {
		if s.size += s.bound.Size(e); s.size > s.bound.Most {
			s.ended, s.err = true, s.bound.Err
			return false
		}
	}
	s.list = append(s.list, e)
	return true
}

// End ends the stream with an error or nil. Only the first call has an effect.
func (s *Stream[E]) End(err error) {
	s.mu.Lock()
	if !s.ended {
		s.ended, s.err = true, err
	}
	s.mu.Unlock()
	s.ring()
}

func (s *Stream[E]) ring() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// Take waits for elements and returns all that are there. If ended is true, they are the last ones, and err is the
// stream's error. If ctx ends first, Take returns its cause.
func (s *Stream[E]) Take(ctx context.Context) (list []E, ended bool, err error) {
	for {
		s.mu.Lock()
		list, s.list, s.size = s.list, nil, 0
		ended, err = s.ended, s.err
		s.mu.Unlock()
		if len(list) > 0 || ended {
			return list, ended, err
		}
		select {
		case <-s.news:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// Each passes elements to yield until the stream ends, yield returns false, or ctx ends; it passes none after that. It
// returns the stream's error or the cause of ctx, and nil if yield returned false.
func (s *Stream[E]) Each(ctx context.Context, yield func(E) bool) error {
	for {
		list, ended, err := s.Take(ctx)
		for _, e := range list {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if !yield(e) {
				return nil
			}
		}
		if err != nil || ended {
			return err
		}
	}
}
