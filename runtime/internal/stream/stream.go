// Package stream provides an unbounded queue from a producer, which never blocks, to one reader.
//
// The queue has no limit of its own: its users have one, such as the number of tokens of a request.
package stream

import (
	"context"
	"sync"
	"time"
)

// Stream holds the elements that were put and not yet taken. Its methods are safe for concurrent use.
type Stream[E any] struct {
	mu    sync.Mutex
	list  []element[E]
	ended bool
	err   error
	news  chan struct{} // signals that something was put; capacity 1
}

type element[E any] struct {
	value E
	due   time.Time // Each passes it on then; zero: at once
}

// New returns an empty stream.
func New[E any]() *Stream[E] { return &Stream[E]{news: make(chan struct{}, 1)} }

// Put adds an element.
func (s *Stream[E]) Put(e E) { s.PutAt(e, time.Time{}) }

// PutAt adds an element that Each holds back until it is due. Those behind it wait too.
func (s *Stream[E]) PutAt(e E, due time.Time) {
	s.mu.Lock()
	s.list = append(s.list, element[E]{e, due})
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

// Take waits for elements and returns all that are there, due or not. If ended is true, they are the last ones, and err
// is the stream's error. If ctx ends first, Take returns its cause.
func (s *Stream[E]) Take(ctx context.Context) (list []E, ended bool, err error) {
	all, ended, err := s.take(ctx)
	for _, e := range all {
		list = append(list, e.value)
	}
	return list, ended, err
}

func (s *Stream[E]) take(ctx context.Context) (list []element[E], ended bool, err error) {
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
		list, ended, err := s.take(ctx)
		for _, e := range list {
			if !wait(ctx, e.due) {
				return context.Cause(ctx)
			}
			if !yield(e.value) {
				return nil
			}
		}
		if err != nil || ended {
			return err
		}
	}
}

// wait returns true at the given time, and false as soon as ctx has ended.
func wait(ctx context.Context, until time.Time) bool {
	if d := time.Until(until); !until.IsZero() && d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}
