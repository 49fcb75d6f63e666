package nn_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/nn"
)

// A layer whose cache keeps only its window, or a chunk, gives the same results as one that keeps everything and masks:
// over steps of all sizes, packed with others, rewound and restored from snapshots, and for layers that read stored
// keys and values.
func TestAttendRotating(t *testing.T) {
	for _, c := range []struct {
		nn.AttendOptions
		bits int
	}{
		{nn.AttendOptions{Scale: 0.3, Window: 1}, 0}, {nn.AttendOptions{Scale: 0.3, Window: 5}, 0},
		{nn.AttendOptions{Scale: 0.3, Window: 40, SoftCap: 4}, 0}, {nn.AttendOptions{Scale: 0.3, Window: 300}, 0},
		{nn.AttendOptions{Scale: 0.3, Window: 513}, 0}, {nn.AttendOptions{Scale: 0.3, Window: 7, Values: 5}, 0},
		{nn.AttendOptions{Scale: 0.3, Window: 40, SoftCap: 4}, 8}, {nn.AttendOptions{Scale: 0.3, Window: 300}, 4},
		{nn.AttendOptions{Scale: 0.3, Window: 7, Values: 5}, 8},
		{nn.AttendOptions{Scale: 0.3, Window: 5, Chunked: true}, 0},
		{nn.AttendOptions{Scale: 0.3, Window: 40, Chunked: true}, 8},
		{nn.AttendOptions{Scale: 0.3, Window: 300, Chunked: true}, 0},
	} {
		o := c.AttendOptions
		name := fmt.Sprintf("window %d chunked %v values %d bits %d", o.Window, o.Chunked, o.Values, c.bits)
		t.Run(name, func(t *testing.T) {
			mlxtest.Do(t, func(e *mlx.Thread) {
				live := e.Memory().Arrays
				w := &windows{t: t, e: e, o: o, key: mlx.Keep(mlx.RandomKey(e, 3)),
					rand: rand.New(rand.NewPCG(uint64(o.Window), 1))}
				for range 4 {
					w.whole = append(w.whole, cache.NewSequence(cache.Packed([]cache.Kind{cache.Full}, c.bits)))
					w.bounded = append(w.bounded, cache.NewSequence(cache.Packed([]cache.Kind{cache.Rotating(o.Window)}, c.bits)))
				}
				for i := range 40 {
					e.Scope(func() { w.step(i) })
				}
				for i := range w.whole {
					if got, most := w.bounded[i].State()[0].Dim(2), o.Window+1024+256; got > most {
						t.Errorf("a window of %d has storage for %d positions", o.Window, got)
					}
					w.whole[i].Free()
					w.bounded[i].Free()
				}
				mlx.Free(w.key)
				if got := e.Memory().Arrays; got > live+8 { // the two keys of the split
					t.Errorf("%d arrays live, %d before", got, live)
				}
			})
		})
	}
}

type windows struct {
	t              *testing.T
	e              *mlx.Thread
	o              nn.AttendOptions
	key            *mlx.Array
	rand           *rand.Rand
	whole, bounded []*cache.Sequence
}

func (w *windows) random(shape ...int) *mlx.Array {
	keys := mlx.RandomSplit(w.key, 2)
	mlx.Free(w.key)
	w.key = mlx.Keep(mlx.Copy(mlx.Reshape(mlx.Slice(keys, mlx.At(0), mlx.All()), 2)))
	return mlx.RandomNormal(mlx.Reshape(mlx.Slice(keys, mlx.At(1), mlx.All()), 2), mlx.Float32, shape...)
}

// step appends some rows to some of the sequences, in one batch.
func (w *windows) step(number int) {
	var whole, bounded nn.Batch
	total := 0
	for i := range w.whole {
		if w.rand.IntN(4) == 0 {
			w.back(i)
			continue
		}
		n := []int{1, 1, 1, 1, 2, 7, 30, 260, 1000}[w.rand.IntN(9)]
		s := nn.Segment{Seq: w.whole[i], Row: total, Len: n, Pos: w.whole[i].Offset()}
		whole.Segments = append(whole.Segments, s)
		s.Seq = w.bounded[i]
		bounded.Segments = append(bounded.Segments, s)
		total += n
	}
	if total == 0 {
		return
	}
	q, k := w.random(total, 4, 16), w.random(total, 2, 16)
	v := k
	if w.o.Values > 0 {
		v = nil
	}
	want := nn.Attend(&whole, 0, q, k, v, w.o)
	if number%3 == 0 { // query only the last rows
		var positions []int32
		for _, s := range bounded.Segments {
			first := w.rand.IntN(s.Len)
			for r := range s.Len {
				positions = append(positions, int32(s.Pos+r))
				if r >= first {
					bounded.Want = append(bounded.Want, s.Row+r)
				}
			}
		}
		bounded.Positions = mlx.FromSlice(w.e, positions)
		bounded.Tokens = bounded.Positions
		q, want = bounded.Wanted(q), bounded.Wanted(want)
	}
	w.compare(fmt.Sprintf("step %d", number), nn.Attend(bounded.Ending(), 0, q, k, v, w.o), want)
	w.compare(fmt.Sprintf("reading after step %d", number), nn.AttendStored(bounded.Narrow(), 0, q, w.o), want)
}

// back rewinds to an earlier position, or restores a snapshot after other tokens.
func (w *windows) back(i int) {
	whole, bounded := w.whole[i], w.bounded[i]
	at := whole.Offset()
	if at > 0 && at <= w.o.Window {
		at = w.rand.IntN(at)
		if !whole.Rewind(at) || !bounded.Rewind(at) {
			w.t.Errorf("cannot rewind to %d within a window of %d", at, w.o.Window)
		}
		return
	}
	a, b := whole.Snapshot(0), bounded.Snapshot(0)
	for _, s := range []*cache.Sequence{whole, bounded} {
		x := mlx.Full(w.e, 3, mlx.Float32, 9, 2, 16)
		v := x
		if w.o.Values > 0 {
			v = nil
		}
		for _, n := range []int{9, 1} {
			other := &nn.Batch{Segments: []nn.Segment{{Seq: s, Len: n, Pos: s.Offset()}}}
			rows := mlx.Slice(x, mlx.Range(0, n), mlx.All(), mlx.All())
			if v != nil {
				v = rows
			}
			nn.Attend(other, 0, rows, rows, v, w.o)
		}
	}
	if !whole.Restore(a, at) || !bounded.Restore(b, at) {
		w.t.Errorf("cannot restore to %d", at)
	}
	a.Close()
	b.Close()
}

func (w *windows) compare(what string, got, want *mlx.Array) {
	w.t.Helper()
	if !slices.Equal(got.Shape(), want.Shape()) {
		w.t.Errorf("%s has shape %v, want %v", what, got.Shape(), want.Shape())
		return
	}
	if worst := mlx.Max(mlx.Abs(mlx.Subtract(got, want)), false).Float32s()[0]; !(worst < 1e-5) {
		w.t.Errorf("%s: largest difference %v", what, worst)
	}
}
