package convert

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/quantize/weighted"
)

// statisticsOf writes statistics of inputs of the given width for tensors, and returns the file.
func statisticsOf(t *testing.T, width, block int, tensors ...string) string {
	t.Helper()
	s := statistics.New(statistics.About{Tokens: 100, Block: block})
	l := &statistics.Layer{Width: width, Rows: []int64{100}}
	for i := range width {
		l.Squares = append(l.Squares, float32(1+i%7*i%5))
	}
	if block > 0 {
		l.Moments = func(b int) ([]float32, error) {
			m := make([]float32, block*block)
			for i := range block {
				for j := range block {
					m[i*block+j] = float32(math.Exp(-math.Abs(float64(i - j))))
				}
			}
			return m, nil
		}
	}
	s.Add(l, tensors...)
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s.safetensors")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	calibratedTensor = "model.layers.1.mlp.gate_proj.weight" // [256, 128] in wideConfig
	otherTensor      = "model.layers.0.mlp.gate_proj.weight"
)

// The codes of a tensor with statistics are those of package weighted, whatever the source's type, and the image does
// not depend on the number of processors. Other tensors are as without statistics.
func TestCalibrated(t *testing.T) {
	for _, c := range []struct {
		to    quantize.Type
		from  quantize.DType
		block int
		rule  string
	}{
		{quantize.Int4, quantize.BF16, 0, "affine-search-1"},
		{quantize.Int3.WithGroup(32), quantize.F16, 128, "affine-gptq-1"},
		{quantize.Int5, quantize.F64, 0, "affine-search-1"},
		{quantize.MXFP4, quantize.F32, 0, "mxfp4-search-1"},
		{quantize.NVFP4, quantize.BF16, 64, "nvfp4-gptq-1"},
	} {
		file := statisticsOf(t, 128, c.block, calibratedTensor)
		ck := typed(t, finiteWeights(tiny(t, wideConfig, 1)), c.from)
		store, dir := openStore(t), ck.write(t, t.TempDir())
		o := Options{Precision: recipe.Precision{Type: c.to}, Calibration: file, Parallel: 1}
		one := mustCreate(t, store, "x", from(dir), o)
		o.Parallel = 3
		if three := mustCreate(t, openStore(t), "x", from(dir), o); three.Digest != one.Digest {
			t.Errorf("%s: %s with one processor, %s with three", c.to, one.Digest, three.Digest)
		}
		mustCreate(t, store, "plain", from(dir), Options{Precision: o.Precision, Calibration: NoCalibration})
		img, plain := mustResolve(t, store, "x").Image, mustResolve(t, store, "plain").Image
		meta, have := arrays(t, store, img, calibratedTensor)
		if meta[blob.MetaRule] != c.rule {
			t.Errorf("%s: rule %q, want %q", c.to, meta[blob.MetaRule], c.rule)
		}
		_, without := arrays(t, store, plain, calibratedTensor)
		if bytes.Equal(have[0].data, without[0].data) {
			t.Errorf("%s: statistics do not change the codes", c.to)
		}
		if !bytes.Equal(have[0].data, wantCodes(t, c.to, file, sourceTensor(ck, calibratedTensor), c.from)) {
			t.Errorf("%s: the codes differ from those of package weighted", c.to)
		}
		_, other := arrays(t, store, img, otherTensor)
		_, same := arrays(t, store, plain, otherTensor)
		for i := range same {
			if !bytes.Equal(other[i].data, same[i].data) {
				t.Errorf("%s: a tensor without statistics differs", c.to)
			}
		}
	}
}

// wantCodes quantizes a tensor with package weighted.
func wantCodes(t *testing.T, to quantize.Type, file string, src tensor, from quantize.DType) []byte {
	t.Helper()
	found, err := statistics.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	data := src.data
	if from != quantize.F32 {
		data = encoded(t, quantize.ToF32, data, from, src.NumElements())
	}
	rows := make([]float32, len(data)/4)
	for i := range rows {
		rows[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	l := found.Layer(calibratedTensor)
	var factors []*weighted.Factor
	for i := range statistics.Blocks(l.Width, max(found.Block, 1)) {
		if l.Moments == nil {
			break
		}
		m, err := l.Moments(i)
		if err != nil {
			t.Fatal(err)
		}
		f, err := weighted.NewFactor(m, found.Block)
		if err != nil {
			t.Fatal(err)
		}
		factors = append(factors, f)
	}
	scales := from
	if from == quantize.F64 {
		scales = quantize.F32
	}
	coder, err := weighted.New(to, scales, l.Squares, factors, found.Block)
	if err != nil {
		t.Fatal(err)
	}
	b := to.NewBlocks(quantize.F32, len(rows)/to.Group())
	if err := coder.Encode(b, rows); err != nil {
		t.Fatal(err)
	}
	return b.Packed
}

func TestCalibrationRefused(t *testing.T) {
	dir := finiteWeights(tiny(t, wideConfig, 1)).write(t, t.TempDir())
	p := recipe.Precision{Type: quantize.Int4}
	create := func(st, path string) error {
		_, err := DryRun(t.Context(), nil, from(path), Options{Precision: p, Calibration: st})
		return err
	}
	if err := create(statisticsOf(t, 64, 0, calibratedTensor), dir); !errors.Is(err, statistics.ErrStatistics) ||
		!strings.Contains(err.Error(), calibratedTensor) {
		t.Errorf("other inputs: %v", err)
	}
	if err := create(AutoCalibration, dir); err == nil || !strings.Contains(err.Error(), "ingot calibrate") {
		t.Errorf("a folder: %v", err)
	}
	if err := create(filepath.Join(dir, "nosuch"), dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := create(filepath.Join(dir, "config.json"), dir); !errors.Is(err, statistics.ErrStatistics) {
		t.Errorf("no statistics: %v", err)
	}
	store := openStore(t)
	mustCreate(t, store, "x", from(dir), Options{})
	o := Options{Precision: p, Calibration: statisticsOf(t, 128, 0, calibratedTensor)}
	if _, err := Create(t.Context(), store, modelName(t, "y"), from("x"), o); !errors.Is(err, statistics.ErrStatistics) {
		t.Errorf("statistics of other weights: %v", err)
	}
	o.Calibration = AutoCalibration
	if _, err := Create(t.Context(), store, modelName(t, "y"), from("x"), o); err == nil ||
		!strings.Contains(err.Error(), "has no statistics") {
		t.Errorf("no statistics: %v", err)
	}
}

// Without a rule set, recipes of images name the one that was used.
func TestRuleSetIsRecorded(t *testing.T) {
	for set, want := range map[recipe.RuleSet]recipe.RuleSet{
		"": recipe.RuleSet2, recipe.RuleSet2: recipe.RuleSet2, recipe.RuleSet1: "",
	} {
		if got := (recipe.Precision{Type: quantize.Int4, RuleSet: set}).Recorded().RuleSet; got != want {
			t.Errorf("%q: %q, want %q", set, got, want)
		}
	}
	if !slices.Contains(recipe.RuleSets(), recipe.DefaultRuleSet) {
		t.Error("the default is not listed")
	}
	if _, _, err := recipe.Parse([]byte(`{"rule_set": "rules-9"}`)); !errors.Is(err, recipe.ErrRecipe) {
		t.Errorf("an unknown rule set: %v", err)
	}
}
