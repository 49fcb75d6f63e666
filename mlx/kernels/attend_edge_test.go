package kernels_test

import (
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// Writes happen after the readers of the older version, whichever is evaluated first, and reuse its memory.
func TestAttendOrder(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		const window = 8
		rows := func(n int, value float64) *mlx.Array { return mlx.Full(e, value, mlx.Float32, n, 1, 16) }
		o := mlx.AttendOptions{Scale: 1, Window: window, Ring: true}
		for _, writeFirst := range []bool{true, false} {
			store := mlx.Store{K: mlx.Zeros(e, mlx.Float32, 1, 1, window, 16), V: mlx.Zeros(e, mlx.Float32, 1, 1, window, 16)}
			_, stores := mlx.Attend(rows(window, 1), rows(window, 1), rows(window, 1),
				[]mlx.AttendSegment{{Store: store, Rows: window}}, o)
			mlx.Eval(stores[0].K, stores[0].V)
			before := e.Memory().Active

			at := mlx.AttendSegment{Store: stores[0], Rows: 1, Position: window - 1, Seen: window}
			seen, read := mlx.AttendStored(rows(1, 1), []mlx.AttendSegment{at}, o)
			o := o
			o.After = []*mlx.Array{read}
			next := mlx.AttendSegment{Store: stores[0], Rows: window, Position: window}
			after, written := mlx.Attend(rows(window, 1), rows(window, 5), rows(window, 5), []mlx.AttendSegment{next}, o)
			list := []*mlx.Array{written[0].V, written[0].K, after, seen}
			if !writeFirst {
				slices.Reverse(list)
			}
			mlx.Eval(list...)
			if got := seen.Float32s()[0]; got != 1 {
				t.Errorf("write first %v: the reader saw %v of the later write", writeFirst, got)
			}
			if got := written[0].V.Float32s()[0]; got != 5 {
				t.Errorf("write first %v: the new version holds %v", writeFirst, got)
			}
			if grown := e.Memory().Active - before; !e.Info().GPU && grown > 4096 {
				t.Errorf("the new version allocated %d bytes", grown)
			}
		}
	})
}

func TestAttendRefuses(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		zeros := func(shape ...int) *mlx.Array { return mlx.Zeros(e, mlx.Float32, shape...) }
		store := mlx.Store{K: zeros(1, 2, 8, 4), V: zeros(1, 2, 8, 4)}
		q, k := zeros(3, 4, 4), zeros(3, 2, 4)
		at := func(rows, position int) []mlx.AttendSegment {
			return []mlx.AttendSegment{{Store: store, Rows: rows, Position: position}}
		}
		for name, try := range map[string]func(){
			"past the storage": func() { mlx.Attend(q, k, k, at(3, 6), mlx.AttendOptions{}) },
			"fewer rows":       func() { mlx.Attend(q, k, k, at(2, 0), mlx.AttendOptions{}) },
			"more rows":        func() { mlx.Attend(q, k, k, append(at(3, 0), at(1, 0)...), mlx.AttendOptions{}) },
			"rows not stored": func() {
				s := mlx.AttendSegment{Store: store, Rows: 3, Position: 1, Stored: 2}
				mlx.Attend(q, mlx.Slice(k, mlx.Range(0, 2), mlx.All(), mlx.All()),
					mlx.Slice(k, mlx.Range(0, 2), mlx.All(), mlx.All()), []mlx.AttendSegment{s}, mlx.AttendOptions{})
			},
			"rows before the first": func() {
				s := mlx.AttendSegment{Store: store, Rows: 1, Position: 1, Stored: 3}
				mlx.Attend(mlx.Slice(q, mlx.Range(0, 1), mlx.All(), mlx.All()), k, k, []mlx.AttendSegment{s}, mlx.AttendOptions{})
			},
			"no segment":   func() { mlx.Attend(q, k, k, nil, mlx.AttendOptions{}) },
			"negative":     func() { mlx.Attend(q, k, k, at(3, -1), mlx.AttendOptions{}) },
			"no keys":      func() { mlx.Attend(q, nil, k, at(3, 0), mlx.AttendOptions{}) },
			"no values":    func() { mlx.Attend(q, k, nil, at(3, 0), mlx.AttendOptions{}) },
			"heads":        func() { mlx.Attend(zeros(3, 3, 4), k, k, at(3, 0), mlx.AttendOptions{}) },
			"size":         func() { mlx.Attend(zeros(3, 4, 8), k, k, at(3, 0), mlx.AttendOptions{}) },
			"wide window":  func() { mlx.Attend(q, k, k, at(3, 0), mlx.AttendOptions{Window: 9, Ring: true}) },
			"chunks":       func() { mlx.Attend(q, k, k, at(3, 0), mlx.AttendOptions{Chunked: true}) },
			"sinks":        func() { mlx.Attend(q, k, k, at(3, 0), mlx.AttendOptions{Sinks: zeros(3)}) },
			"nothing seen": func() { mlx.AttendStored(q, at(3, 0), mlx.AttendOptions{}) },
			"bits that are not": func() {
				s := mlx.AttendSegment{Store: mlx.Store{K: store.K, V: store.V, Bits: 8}, Rows: 3}
				mlx.Attend(q, k, k, []mlx.AttendSegment{s}, mlx.AttendOptions{})
			},
			"bits and no bits": func() {
				packed := mlx.Store{K: mlx.Zeros(e, mlx.Uint8, 1, 2, 8, 8), V: mlx.Zeros(e, mlx.Uint8, 1, 2, 8, 8), Bits: 8}
				mlx.Attend(q, k, k, append(at(2, 0), mlx.AttendSegment{Store: packed, Rows: 1}), mlx.AttendOptions{})
			},
			"bytes that fit no size": func() {
				s := mlx.AttendSegment{Store: mlx.Store{K: mlx.Zeros(e, mlx.Uint8, 1, 2, 8, 9),
					V: mlx.Zeros(e, mlx.Uint8, 1, 2, 8, 9), Bits: 8}, Rows: 3}
				mlx.Attend(q, k, k, []mlx.AttendSegment{s}, mlx.AttendOptions{})
			},
			"bits of another number": func() {
				s := mlx.AttendSegment{Store: mlx.Store{K: mlx.Zeros(e, mlx.Uint8, 1, 2, 8, 8),
					V: mlx.Zeros(e, mlx.Uint8, 1, 2, 8, 8), Bits: 5}, Rows: 3}
				mlx.Attend(q, k, k, []mlx.AttendSegment{s}, mlx.AttendOptions{})
			},
			"lost by the ring": func() {
				s := mlx.AttendSegment{Store: store, Rows: 3, Position: 4, Seen: 20}
				mlx.AttendStored(q, []mlx.AttendSegment{s}, mlx.AttendOptions{Window: 4, Ring: true})
			},
		} {
			func() {
				defer func() {
					if _, ok := recover().(*mlx.Error); !ok {
						t.Errorf("%s: no *mlx.Error", name)
					}
				}()
				try()
			}()
		}
	})
}
