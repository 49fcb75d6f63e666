// Package stream provides an unbounded queue from a producer, which never blocks, to one reader.
//
// The queue has no limit of its own: its users have one, such as the number of tokens of a request.
package stream

import (
	"context"
	"sync"
)

// Stream holds the elements that were put and not yet taken. Its methods are safe for concurrent use.
type Stream[E any] struct {
	mu    sync.Mutex
	list  []E
	ended bool
	err   error
	news  chan struct{} // signals that something was put; capacity 1
}

// New returns an empty stream.
func New[E any]() *Stream[E] { return &Stream[E]{news: make(chan struct{}, 1)} }

// Put adds an element.
func (s *Stream[E]) Put(e E) {
	s.mu.Lock()
	s.list = append(s.list, e)
	s.mu.Unlock()
	s.ring()
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
		list, s.list = s.list, nil
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
