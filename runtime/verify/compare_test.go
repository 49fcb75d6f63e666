package verify

import (
	"math"
	"testing"

	"github.com/ingotml/ingot/runtime/quality"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*math.Max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func compareRows(vocab int, ref, ours []float32) Comparison {
	c := newComparer(&quality.Reference{Tokens: make([]int32, len(ref)/vocab), Logits: ref, Vocab: vocab})
	for i := 0; i < len(ref); i += vocab {
		c.add(ours[i : i+vocab])
	}
	return c.result()
}

func TestCompareEqual(t *testing.T) {
	x := []float32{1, 2, 3, -4, 5, 60}
	c := compareRows(3, x, x)
	if c.Tokens != 2 || c.MaxAbs != 0 || c.MeanAbs != 0 || c.MeanKL != 0 || c.Top1 != 1 {
		t.Errorf("equal logits: %+v", c)
	}
}

func TestCompareMeasures(t *testing.T) {
	c := compareRows(2, []float32{0, float32(math.Log(3))}, []float32{0, 0})
	near(t, "max_abs", c.MaxAbs, math.Log(3))
	near(t, "mean_abs", c.MeanAbs, math.Log(3)/2)
	near(t, "mean_kl", c.MeanKL, 0.25*math.Log(0.25/0.5)+0.75*math.Log(0.75/0.5))
	near(t, "deviation", c.Scale, math.Log(3)/2)
	if c.Top1 != 0 {
		t.Errorf("top1 is %v: the first of equal logits is not the reference's", c.Top1)
	}
	// Adding a constant to all logits does not change the distribution.
	near(t, "mean_kl of a shift", compareRows(2, []float32{1, 2}, []float32{101, 102}).MeanKL, 0)
}

// Positions at which the reference's two largest logits are nearly equal do not count.
func TestCompareMargin(t *testing.T) {
	ref := []float32{100, 0, 0, 1.0001, 1, -100}
	if c := compareRows(3, ref, []float32{100, 0, 0, 1, 1.0001, -100}); c.Top1 != 1 {
		t.Errorf("top1 is %v, want 1: the second position is undecided", c.Top1)
	}
	if c := compareRows(3, ref, []float32{0, 100, 0, 1.0001, 1, -100}); c.Top1 != 0 {
		t.Errorf("top1 is %v, want 0: the first position is decided", c.Top1)
	}
}

func TestCompareNotFinite(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		if c := compareRows(2, []float32{1, 2}, []float32{bad, 2}); c.MeanKL <= 1e-3 || !math.IsInf(c.MaxAbs, 1) {
			t.Errorf("a logit of %v passes: %+v", bad, c)
		}
	}
}
