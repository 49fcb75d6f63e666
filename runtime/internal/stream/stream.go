// Package stream carries elements from one who makes them to one who reads them, of whom the first never waits.
//
// There is no bound: whoever uses it has one, such as the number of tokens of a request.
package stream

import (
	"context"
	"sync"
)

// Stream is the elements that were put and not yet taken. Its methods may be called from any goroutine.
type Stream[E any] struct {
	mu    sync.Mutex
	list  []E
	ended bool
	err   error
	news  chan struct{} // one element: something was put
}

// New makes an empty stream.
func New[E any]() *Stream[E] { return &Stream[E]{news: make(chan struct{}, 1)} }

// Put adds an element.
func (s *Stream[E]) Put(e E) {
	s.mu.Lock()
	s.list = append(s.list, e)
	s.mu.Unlock()
	s.ring()
}

// End says that no more elements come, and why. Only the first call counts.
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

// Take waits for elements and gives all that are there. ended says that they were the last ones, and err how the stream ended. When the
// context ends first, its error is given.
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
			return nil, false, ctx.Err()
		}
	}
}

// Each hands elements to a reader until the stream has ended, the reader wants no more, or the context ends: nothing is handed
// over after that. err is how the stream ended, or the context's; it is nil when the reader left.
func (s *Stream[E]) Each(ctx context.Context, yield func(E) bool) error {
	for {
		list, ended, err := s.Take(ctx)
		for _, e := range list {
			if err := ctx.Err(); err != nil {
				return err
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
