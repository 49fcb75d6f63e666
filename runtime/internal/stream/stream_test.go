package stream

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func TestStream(t *testing.T) {
	s, broken := New[int](), errors.New("broken")
	s.Put(1)
	s.Put(2)
	if got, ended, err := s.Take(t.Context()); !slices.Equal(got, []int{1, 2}) || ended || err != nil {
		t.Errorf("%v, %v, %v", got, ended, err)
	}
	go func() {
		s.Put(3)
		s.End(broken)
		s.End(nil)
	}()
	var all []int
	for {
		got, ended, err := s.Take(t.Context())
		all = append(all, got...)
		if ended {
			if err != broken {
				t.Errorf("it ended with %v", err)
			}
			break
		}
	}
	if !slices.Equal(all, []int{3}) {
		t.Errorf("%v", all)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := New[int]().Take(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("an empty stream of a cancelled reader: %v", err)
	}
}
