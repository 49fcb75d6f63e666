package convert

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/search"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/opencontainers/go-digest"
)

// sensitive is the tensor whose errors count most in a fakeMeasure.
const sensitive = "model.layers.1.mlp.down_proj.weight"

// fakeMeasure stands for a divergence: squared errors of weights, in a unit that a probe measures well. The errors of
// sensitive count 100 times.
func fakeMeasure(t *testing.T, st *store.Store) func(context.Context, manifest.Image, manifest.Image) (float64, error) {
	return func(ctx context.Context, img, plain manifest.Image) (sum float64, err error) {
		entry := &store.Entry{Name: modelName(t, "x"), Image: img, Digest: digest.FromString("x")}
		src, err := source.OpenImage(ctx, st, entry, source.Options{})
		if err != nil {
			return 0, err
		}
		defer src.Close()
		for _, w := range src.Tensors() {
			if w.Quant == 0 {
				continue
			}
			_, coded := arrays(t, st, img, w.Name)
			_, have := arrays(t, st, plain, w.Name)
			b := quantize.Blocks{Packed: coded[0].data, Scales: coded[1].data}
			if len(coded) > 2 {
				b.Biases = coded[2].data
			}
			want := encoded(t, quantize.ToF32, have[0].data, quantize.BF16, have[0].NumElements())
			got := make([]byte, len(want))
			if err := w.Quant.Decode(got, quantize.F32, b, quantize.BF16); err != nil {
				return 0, err
			}
			weight := 1e-4
			if w.Name == sensitive {
				weight = 1e-2
			}
			for i := 0; i < len(want); i += 4 {
				d := float64(float32FromBytes(want[i:]) - float32FromBytes(got[i:]))
				sum += weight * d * d
			}
		}
		return sum, nil
	}
}

func searching(t *testing.T, st *store.Store, goal search.Goal) Options {
	return Options{Search: &search.Options{Goal: goal, Measure: fakeMeasure(t, st)}, Parallel: 2}
}

// tensorBytes returns the bytes of an image's tensors.
func tensorBytes(t *testing.T, st *store.Store, img manifest.Image) (n int64) {
	for _, l := range img.Layers {
		if l.Kind == manifest.KindTensor {
			_, list := arrays(t, st, img, l.Name)
			for _, a := range list {
				n += int64(len(a.data))
			}
		}
	}
	return n
}

// A search for a size ends within it, close to it, with the bytes that it says, and with more bits where errors count.
// Its recipe makes the same image without the search. Nothing else stays in the store.
func TestSearchSize(t *testing.T) {
	dir := finiteWeights(tiny(t, wideConfig, 1)).write(t, t.TempDir())
	calibration := statisticsOf(t, 128, 64, calibratedTensor)
	st := openStore(t)
	o := searching(t, st, search.Goal{Bits: 4.5})
	o.Calibration = calibration
	r := mustCreate(t, st, "x", from(dir), o)
	img := mustResolve(t, st, "x").Image
	f := r.Search
	if n := tensorBytes(t, st, img); n != f.Bytes || f.Bits > 4.5 || f.Bits < 4.4 {
		t.Errorf("%d bytes, %d as it says; %.3f bits", n, f.Bytes, f.Bits)
	}
	if f.MeanKL <= 0 || math.Abs(f.Predicted/f.MeanKL-1) > 0.3 {
		t.Errorf("divergence %g, predicted %g", f.MeanKL, f.Predicted)
	}
	bits := map[string]int{}
	for _, rule := range f.Precision.Rules {
		bits[rule.Match] = rule.Type.Bits()
	}
	if other := bits["model.layers.0.mlp.down_proj.weight"]; bits[sensitive] <= other {
		t.Errorf("the sensitive tensor has %d bits, another %d", bits[sensitive], other)
	}
	replay := mustCreate(t, st, "y", from(dir), Options{Precision: f.Precision, Calibration: calibration})
	if replay.Digest != r.Digest {
		t.Errorf("the recipe gives %s, the search %s", replay.Digest, r.Digest)
	}
	if q := mustTexts(t, st, "x").Quantization; q == nil || len(q.Rules) != len(f.Precision.Rules) {
		t.Errorf("the image has the recipe %v", q)
	}
	var svg strings.Builder
	if err := f.Plot(&svg, "a < b"); err != nil || strings.Count(svg.String(), "<circle") != 2 ||
		!strings.Contains(svg.String(), "a &lt; b") {
		t.Errorf("plot: %v\n%s", err, svg.String())
	}
	checkTidy(t, st)
}

// A second search of the same weights measures only what depends on its goal, and finds the same as without the first.
// One that is interrupted continues. One with other conditions begins anew.
func TestSearchAgain(t *testing.T) {
	dir := finiteWeights(tiny(t, wideConfig, 1)).write(t, t.TempDir())
	find := func(st *store.Store, bits float64, measured string) *search.Found {
		o := searching(t, st, search.Goal{Bits: bits})
		o.Search.Measured = measured
		return mustCreate(t, st, "x", from(dir), o).Search
	}
	st := openStore(t)
	first := find(st, 5, "a text")
	second, alone := find(st, 4, "a text"), find(openStore(t), 4, "")
	if second.Measured >= first.Measured || second.Measured >= alone.Measured {
		t.Errorf("%d measurements, then %d; alone %d", first.Measured, second.Measured, alone.Measured)
	}
	if !reflect.DeepEqual(second.Precision, alone.Precision) || second.MeanKL != alone.MeanKL {
		t.Errorf("%v with a divergence of %g, alone %v with %g", second.Precision, second.MeanKL, alone.Precision,
			alone.MeanKL)
	}
	if near := find(st, 4.02, "a text"); near.Measured > 1 || near.MeanKL > second.MeanKL {
		t.Errorf("about the same size: %d measurements, a divergence of %g, before %g", near.Measured, near.MeanKL,
			second.MeanKL)
	}
	if same := find(st, 4, "a text"); same.Measured != 0 || !reflect.DeepEqual(same.Precision, second.Precision) {
		t.Errorf("the same again: %d measurements", same.Measured)
	}
	interrupted, left := openStore(t), 5
	cut := searching(t, interrupted, search.Goal{Bits: 4})
	cut.Search.Measured = "a text"
	measure, n, failed := cut.Search.Measure, 0, errors.New("interrupted")
	cut.Search.Measure = func(ctx context.Context, img, plain manifest.Image) (float64, error) {
		if n++; n > alone.Measured-left {
			return 0, failed
		}
		return measure(ctx, img, plain)
	}
	if _, err := Create(t.Context(), interrupted, modelName(t, "x"), from(dir), cut); !errors.Is(err, failed) {
		t.Fatalf("an interrupted search: %v", err)
	}
	rest := find(interrupted, 4, "a text")
	if rest.Measured != left || !reflect.DeepEqual(rest.Precision, alone.Precision) {
		t.Errorf("after an interruption: %d measurements, want %d", rest.Measured, left)
	}
	if other := find(st, 4, "another"); other.Measured != alone.Measured {
		t.Errorf("%d measurements under other conditions, alone %d", other.Measured, alone.Measured)
	}
}

// With a divergence, the result meets it and is close to it.
func TestSearchDivergence(t *testing.T) {
	dir := finiteWeights(tiny(t, wideConfig, 1)).write(t, t.TempDir())
	const most = 0.1
	st := openStore(t)
	f := mustCreate(t, st, "x", from(dir), searching(t, st, search.Goal{MaxKL: most})).Search
	if f.MeanKL > most || f.MeanKL < 0.7*most || f.Bits > 10 {
		t.Errorf("divergence %g, want at most %g; %.3f bits", f.MeanKL, most, f.Bits)
	}
}

// An embedding that is read by rows costs next to nothing when time counts: it gets many bits. Rules of the user win.
func TestSearchSpeed(t *testing.T) {
	dir := finiteWeights(tiny(t, wideConfig, 1)).write(t, t.TempDir())
	st := openStore(t)
	o := searching(t, st, search.Goal{Bits: 4.5, Speed: true})
	o.Precision.Rules = []recipe.Rule{{Match: "*.q_proj.weight", Type: quantize.Int8}}
	f := mustCreate(t, st, "x", from(dir), o).Search
	types := map[string]quantize.Type{}
	for _, r := range f.Precision.Rules {
		types[r.Match] = r.Type
	}
	if got := types["model.embed_tokens.weight"]; got != 0 && got.Bits() < 6 { // of 4.5 bits for each weight
		t.Errorf("the embedding is %s", got)
	}
	if f.Bits > 4.5 {
		t.Errorf("%.3f bits", f.Bits)
	}
	for name, of := range types {
		if strings.Contains(name, "layers") && strings.Contains(name, "q_proj") {
			t.Errorf("%s is %s, against the user's rule", name, of)
		}
	}
}

// What cannot be reached is said, and nothing stays.
func TestSearchGoal(t *testing.T) {
	dir := finiteWeights(tiny(t, wideConfig, 1)).write(t, t.TempDir())
	st := openStore(t)
	all := recipe.Precision{Rules: []recipe.Rule{{Match: "*.weight", Type: quantize.Int4}}}
	for _, c := range []struct {
		goal search.Goal
		ask  recipe.Precision
		want error
	}{
		{search.Goal{Bits: 1.5}, recipe.Precision{}, search.ErrGoal},
		{search.Goal{Bytes: 1000}, recipe.Precision{}, search.ErrGoal},
		{search.Goal{Bits: 4}, all, search.ErrGoal},
		{search.Goal{Bits: 4}, recipe.Precision{Type: quantize.Int4}, recipe.ErrRecipe},
	} {
		o := searching(t, st, c.goal)
		o.Precision = c.ask
		if _, err := Create(t.Context(), st, modelName(t, "x"), from(dir), o); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.goal, err, c.want)
		}
	}
	mustCreate(t, st, "int4", from(dir), Options{Precision: recipe.Precision{Type: quantize.Int4}})
	o := searching(t, st, search.Goal{Bits: 4})
	if _, err := Create(t.Context(), st, modelName(t, "x"), from("int4"), o); !errors.Is(err, search.ErrGoal) {
		t.Errorf("a quantized model: %v", err)
	}
	checkTidy(t, st)
}
