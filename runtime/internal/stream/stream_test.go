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

func TestEach(t *testing.T) {
	broken := errors.New("broken")
	full := func(end error) *Stream[int] {
		s := New[int]()
		for i := range 5 {
			s.Put(i)
		}
		s.End(end)
		return s
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, c := range map[string]struct {
		end, want error
		ctx       context.Context
		take      func(int) bool
		n         int
	}{
		"to the end":         {nil, nil, t.Context(), func(int) bool { return true }, 5},
		"to an error":        {broken, broken, t.Context(), func(int) bool { return true }, 5},
		"a reader leaves":    {broken, nil, t.Context(), func(i int) bool { return i < 1 }, 2},
		"a reader's context": {nil, context.Canceled, ctx, func(i int) bool { cancel(); return true }, 1},
	} {
		n := 0
		err := full(c.end).Each(c.ctx, func(i int) bool { n++; return c.take(i) })
		if !errors.Is(err, c.want) || c.want == nil && err != nil || n != c.n {
			t.Errorf("%s: %d elements, %v; want %d, %v", name, n, err, c.n, c.want)
		}
	}
}

// A stream with a bound ends when its reader leaves too much. What the reader takes makes room.
func TestBound(t *testing.T) {
	full := errors.New("full")
	s := Bounded(Bound[int]{10, func(n int) int64 { return int64(n) }, full})
	for range 3 {
		if !s.Put(4) || !s.Put(6) {
			t.Fatal("what fits does not")
		}
		if got, ended, err := s.Take(t.Context()); !slices.Equal(got, []int{4, 6}) || ended || err != nil {
			t.Errorf("%v, %v, %v", got, ended, err)
		}
	}
	s.Put(4)
	if s.Put(7) || !s.Put(1) { // the second is dropped: the stream has ended
		t.Error("the bound does not end the stream once")
	}
	s.End(nil)
	if got, ended, err := s.Take(t.Context()); !slices.Equal(got, []int{4}) || !ended || err != full {
		t.Errorf("%v, %v, %v", got, ended, err)
	}
}
