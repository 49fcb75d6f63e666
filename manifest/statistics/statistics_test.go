package statistics

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
)

func example() *Set {
	s := New(About{Image: digest.FromString("i"), Weights: digest.FromString("w"), Tokens: 12, Program: "p", Block: 2})
	moments := [][]float32{{1, 2, 3, 4}, {5}}
	s.Add(&Layer{
		Width: 3, Rows: []int64{12}, Squares: []float32{1, 4, 5},
		Moments: func(i int) ([]float32, error) { return moments[i], nil },
	}, "q", "k")
	s.Add(&Layer{Width: 2, Rows: []int64{200, 0, 100}, Squares: []float32{1, 2, 9, 9, 4, 5}}, "experts")
	return s
}

func written(t *testing.T, s *Set) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	data := written(t, example())
	got, err := Parse(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	want := example()
	if d := cmp.Diff(want.About, got.About); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"experts", "k", "q"}, got.Tensors()); d != "" {
		t.Error(d)
	}
	if got.Layer("q") != got.Layer("k") || got.Layer("v") != nil {
		t.Error("q and k do not share their input, or v has one")
	}
	if d := cmp.Diff(want.Layer("experts").Squares, got.Layer("experts").Squares); d != "" {
		t.Error(d)
	}
	for i, want := range [][]float32{{1, 2, 3, 4}, {5}} {
		if m, err := got.Layer("q").Moments(i); err != nil || cmp.Diff(want, m) != "" {
			t.Errorf("block %d: %v, %v", i, m, err)
		}
	}
	if !bytes.Equal(data, written(t, got)) {
		t.Error("the same set has other bytes")
	}
}

// An expert that saw few rows takes the mean of all, weighted by rows.
func TestExpert(t *testing.T) {
	l := example().Layer("experts")
	for i, c := range []struct {
		want []float32
		own  bool
	}{{[]float32{1, 2}, true}, {[]float32{2, 3}, false}, {[]float32{2, 3}, false}} {
		got, own := l.Expert(i)
		if cmp.Diff(c.want, got) != "" || own != c.own {
			t.Errorf("expert %d: %v, %v", i, got, own)
		}
	}
	if few := example().Few(); len(few) != 1 {
		t.Errorf("few: %q", few)
	}
}

func TestFit(t *testing.T) {
	s := example()
	for _, c := range []struct {
		name           string
		width, experts int64
		ok             bool
	}{{"q", 3, 1, true}, {"q", 4, 1, false}, {"q", 3, 2, false}, {"experts", 2, 3, true}, {"none", 9, 9, true}} {
		if err := s.Fit(c.name, c.width, c.experts); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrStatistics) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Every damaged file is an error.
func TestDamaged(t *testing.T) {
	data := written(t, example())
	for n := range data {
		if _, err := Parse(bytes.NewReader(data[:n]), int64(n)); !errors.Is(err, ErrStatistics) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	for what, damage := range map[string]func(*Set){
		"a negative square": func(s *Set) { s.Layer("q").Squares[1] = -1 },
		"a NaN":             func(s *Set) { s.Layer("q").Squares[1] = float32(math.NaN()) },
		"negative rows":     func(s *Set) { s.Layer("experts").Rows[0] = -1 },
		"a large block":     func(s *Set) { s.Block = 1 << 20 },
		"no width":          func(s *Set) { s.Add(&Layer{Rows: []int64{1}}, "q") },
	} {
		s := example()
		damage(s)
		if what == "a large block" {
			s.Add(&Layer{Width: 3, Rows: []int64{12}, Squares: []float32{1, 4, 5}}, "q", "k")
		}
		bad := written(t, s)
		if _, err := Parse(bytes.NewReader(bad), int64(len(bad))); !errors.Is(err, ErrStatistics) {
			t.Errorf("%s: %v", what, err)
		}
	}
	other := bytes.Replace(data, []byte("k.moments.1"), []byte("k.moments.7"), 1)
	if _, err := Parse(bytes.NewReader(other), int64(len(other))); !errors.Is(err, ErrStatistics) {
		t.Errorf("a missing block: %v", err)
	}
	s := example()
	s.Layer("q").Moments = func(i int) ([]float32, error) {
		return [][]float32{{1, 2, float32(math.Inf(1)), 4}, {5}}[i], nil
	}
	bad := written(t, s)
	got, err := Parse(bytes.NewReader(bad), int64(len(bad)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := got.Layer("q").Moments(0); !errors.Is(err, ErrStatistics) {
		t.Errorf("an infinite moment: %v", err)
	}
}
