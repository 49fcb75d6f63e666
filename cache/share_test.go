package cache_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/cache/cachetest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// sharing is the kinds of a model's layers, and whether they go back to any of 6 tokens, and of 600.
var sharing = map[string]struct {
	kinds       []cache.Kind
	windows     []int
	short, long bool
}{
	"full":               {[]cache.Kind{cache.Full, cache.None, cache.Full}, []int{0, 0, 0}, true, true},
	"full and window 32": {[]cache.Kind{cache.Full, cache.Rotating(32)}, []int{0, 32}, true, false},
	"full and recurrent": {[]cache.Kind{cache.Recurrent, cache.Full}, []int{0, 0}, false, false},
}

// tokensOf is a sequence of layers that each hold what a test put there.
type tokensOf struct {
	e       *mlx.Thread
	kinds   []cache.Kind
	windows []int
	*cache.Sequence
}

func (s tokensOf) put(values ...float32) {
	for i, l := range s.Layers {
		if l != nil {
			cachetest.Put(s.e, l, s.windows[i], values...)
		}
	}
}

func (s tokensOf) want(t *testing.T, history []float32) {
	t.Helper()
	for i, l := range s.Layers {
		if l == nil {
			continue
		}
		if got, want := cachetest.Contents(s.e, l, s.windows[i]),
			cachetest.Want(s.kinds[i], s.windows[i], history); l.Offset() != len(history) ||
			fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("layer %d holds %v at %d, want %v", i, got, l.Offset(), want)
		}
	}
}

// A sequence that is copied up to a point goes on by itself, where all layers can stand there; else nothing is left of
// it.
func TestCopyPrefix(t *testing.T) {
	for name, c := range sharing {
		for _, length := range []int{6, 600} {
			t.Run(fmt.Sprint(name, " ", length), func(t *testing.T) {
				mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
					src := tokensOf{e, c.kinds, c.windows, cache.NewSequence(c.kinds)}
					dst := tokensOf{e, c.kinds, c.windows, cache.NewSequence(c.kinds)}
					defer src.Free()
					defer dst.Free()
					src.put(count(0, length)...)
					back := c.short && length == 6 || c.long
					for n, can := range map[int]bool{-1: false, 0: true, 4: back, length - 1: back, length: true, length + 1: false} {
						dst.put(7, 8, 9) // what was there goes
						if got := src.CanResume(n); got != can {
							t.Errorf("it can resume at %d: %v", n, got)
						}
						err := dst.CopyPrefix(src.Sequence, n)
						if !can {
							if !errors.Is(err, cache.ErrUnsupported) || dst.Offset() != 0 || len(dst.State()) != 0 {
								t.Errorf("a copy of %d tokens of %d: %v, offset %d", n, length, err, dst.Offset())
							}
							continue
						}
						if err != nil {
							t.Errorf("a copy of %d tokens of %d: %v", n, length, err)
						}
						dst.want(t, count(0, n))
						dst.put(1000, 1001)
						dst.want(t, append(count(0, n), 1000, 1001))
						src.want(t, count(0, length))
						dst.Free()
					}
					if err := src.CopyPrefix(src.Sequence, length); err != nil {
						t.Error(err)
					}
					src.want(t, count(0, length))
				}))
			})
		}
	}
}

// Tokens are taken from the end where layers can go back; else the whole sequence is.
func TestRemove(t *testing.T) {
	for name, c := range sharing {
		for _, length := range []int{6, 600} {
			back := c.short && length == 6 || c.long
			for _, r := range []struct {
				begin, end, left int
				fails            bool
			}{
				{4, length, 4, !back}, {4, math.MaxInt, 4, !back}, {0, math.MaxInt, 0, false}, {length, math.MaxInt, length, false},
				{length + 3, length + 9, length, false}, {2, 2, length, false}, {2, 4, 0, true}, {-1, 3, 0, true}, {5, 3, 0, true},
			} {
				t.Run(fmt.Sprintf("%s [%d, %d) of %d", name, r.begin, r.end, length), func(t *testing.T) {
					mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
						s := tokensOf{e, c.kinds, c.windows, cache.NewSequence(c.kinds)}
						defer s.Free()
						s.put(count(0, length)...)
						err := s.Remove(r.begin, r.end)
						if errors.Is(err, cache.ErrUnsupported) != r.fails || (err != nil) != r.fails {
							t.Errorf("%v", err)
						}
						left := r.left
						if r.fails {
							left = 0
						}
						s.want(t, count(0, left))
					}))
				})
			}
		}
	}
}

// What storage takes is known from one token of a graph that was never evaluated.
func TestShape(t *testing.T) {
	kinds := []cache.Kind{cache.Full, cache.None, cache.Rotating(600), cache.Rotating(100), cache.Recurrent}
	windows := []int{0, 0, 600, 100, 0}
	mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
		first := tokensOf{e, kinds, windows, cache.NewSequence(kinds)}
		first.put(1)
		shape := first.Shape()
		first.Free()
		for _, steps := range [][]int{{1}, {256}, {257}, {99, 1, 1, 1}, {100, 5}, {300, 1}, {700}, {700, 1}, {2000, 30},
			{2000, 30, 1}} {
			s := tokensOf{e, kinds, windows, cache.NewSequence(kinds)}
			n := 0
			for _, rows := range steps {
				s.put(count(n, n+rows)...)
				n += rows
			}
			var got int64
			for _, a := range s.State() {
				got += int64(a.Bytes())
			}
			// The storage of each ring stays as it is until it is 256 positions too large.
			want := shape.Bytes(n, steps[len(steps)-1])
			if got > want || got < want-2*255*(2*2*4*4) {
				t.Errorf("after steps of %v: %d bytes, want %d", steps, got, want)
			}
			if fits := shape.Tokens(want, 5000, steps[len(steps)-1]); shape.Bytes(fits, steps[len(steps)-1]) > want || fits < n {
				t.Errorf("after steps of %v: %d bytes are for %d tokens, not for %d", steps, want, fits, n)
			}
			s.Free()
		}
		if got, one := shape.Plus(shape).Bytes(700, 20), shape.Bytes(700, 20); got != 2*one || shape.Bytes(700, 20) != one {
			t.Errorf("two sequences take %d bytes, one %d", got, one)
		}
		if got := shape.Tokens(0, 1000, 1); got != 0 {
			t.Errorf("%d tokens in no memory", got)
		}
		if got := shape.Tokens(1<<40, 1000, 1); got != 1000 {
			t.Errorf("%d tokens of at most 1000", got)
		}
	}))
}
