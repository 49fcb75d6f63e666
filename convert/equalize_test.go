package convert

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/convert/provenance"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

// unevenInputs writes statistics of groups of tensors that share an input, some of whose channels are large.
func unevenInputs(t *testing.T, widths map[int][][]string) string {
	t.Helper()
	s := statistics.New(statistics.About{Tokens: 100})
	for width, groups := range widths {
		for _, tensors := range groups {
			l := &statistics.Layer{Width: width, Rows: []int64{100}}
			for i := range width {
				v := float32(1)
				if i%9 == 0 {
					v = 400
				}
				l.Squares = append(l.Squares, v)
			}
			s.Add(l, tensors...)
		}
	}
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

// elementsOf returns the elements of a tensor of an image, dequantized.
func elementsOf(t *testing.T, st *store.Store, img manifest.Image, name string, of quantize.Type, n int64) []float64 {
	t.Helper()
	_, list := arrays(t, st, img, name)
	var data []byte
	if of == 0 {
		data = encoded(t, quantize.ToF32, list[0].data, quantize.BF16, n)
	} else {
		data = make([]byte, 4*n)
		b := quantize.Blocks{Packed: list[0].data, Scales: list[1].data, Biases: list[2].data}
		if err := of.Decode(data, quantize.F32, b, quantize.BF16); err != nil {
			t.Fatal(err)
		}
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(float32FromBytes(data[4*i:]))
	}
	return out
}

// Scaled channels compute the same, and lose less where inputs are large. What shares its input with other tensors is
// left alone.
func TestEqualize(t *testing.T) {
	const width, inner = 128, 256 // of wideConfig
	layer := "model.layers.0."
	gate, up, down := layer+"mlp.gate_proj.weight", layer+"mlp.up_proj.weight", layer+"mlp.down_proj.weight"
	query, norm := layer+"self_attn.q_proj.weight", layer+"post_attention_layernorm.weight"
	file := unevenInputs(t, map[int][][]string{
		width: {{gate, up}, {query}}, // the projections of keys and values are missing
		inner: {{down}},
	})
	dir := finiteWeights(tiny(t, wideConfig, 1)).write(t, t.TempDir())
	st := openStore(t)
	source := mustCreate(t, st, "source", from(dir), Options{})
	made := func(name string, of quantize.Type, equalize bool, parallel int) manifest.Image {
		o := Options{
			Precision: recipe.Precision{Type: of, Uniform: true}, Calibration: file, Equalize: equalize, Parallel: parallel,
		}
		mustCreate(t, st, name, from(dir), o)
		return mustResolve(t, st, name).Image
	}
	of := quantize.Int4
	plain, without := mustResolve(t, st, "source").Image, made("without", of, false, 1)
	with := made("with", of, true, 1)
	if made("again", of, true, 3); mustResolve(t, st, "again").Digest != mustResolve(t, st, "with").Digest {
		t.Error("the image depends on the number of processors")
	}
	if source.Digest == mustResolve(t, st, "with").Digest {
		t.Error("nothing is quantized")
	}
	// loss is the error of the products of gate with its inputs, which the norm scales.
	loss := func(img manifest.Image) (sum float64) {
		const columns = width
		n := int64(width * inner)
		want, got := elementsOf(t, st, plain, gate, 0, n), elementsOf(t, st, img, gate, of, n)
		before, after := elementsOf(t, st, plain, norm, 0, columns), elementsOf(t, st, img, norm, 0, columns)
		for i := range want {
			c := int64(i) % columns
			square := 1.0
			if c%9 == 0 {
				square = 400
			}
			e := (got[i]*after[c] - want[i]*before[c]) / before[c]
			sum += square * e * e
		}
		return sum
	}
	if a, b := loss(with), loss(without); !(a < 0.9*b) {
		t.Errorf("error %g with scaled channels, %g without", a, b)
	}
	if a, b := layerDigest(t, with, query), layerDigest(t, without, query); a != b {
		t.Error("a tensor is scaled whose input others share")
	}
	for _, name := range []string{norm, gate, up, down} {
		if layerDigest(t, with, name) == layerDigest(t, without, name) {
			t.Errorf("%s is not scaled", name)
		}
	}
	list, err := provenance.Read(t.Context(), st, mustResolve(t, st, "with").Digest)
	if err != nil || len(list) != 1 || list[0].Equalized == nil || list[0].Equalized.Inputs != 2 {
		t.Errorf("records %+v: %v", list, err)
	}
}

func layerDigest(t *testing.T, img manifest.Image, name string) string {
	t.Helper()
	l, ok := img.Find(manifest.KindTensor, name)
	if !ok {
		t.Fatalf("no %s", name)
	}
	return l.Digest.String()
}
