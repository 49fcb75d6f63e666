package qwen3_5_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/safetensors"
	"github.com/ingotml/ingot/vision"
)

// pictures are the images of testdata/pictures that each golden uses, in order.
var pictures = map[string][]string{
	"fits": {"shapes.png"}, "resized": {"wide.png"}, "photo": {"photo.jpg"},
	"several": {"shapes.png", "wide.png", "shapes.png"},
}

func prepared(t *testing.T, name string) vision.Patches {
	t.Helper()
	config, err := os.ReadFile(filepath.Join(modeltest.Dir("qwen3_5-vision"), "preprocessor_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := vision.New(16, 2, 2).Configured(config)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(modeltest.Dir(""), "..", "pictures", name))
	if err != nil {
		t.Fatal(err)
	}
	patches, err := p.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return patches
}

func golden(t *testing.T, name, tensor string) []float32 {
	t.Helper()
	f, err := safetensors.Open(modeltest.Reference(name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entry, ok := f.Lookup(tensor)
	if !ok {
		t.Fatalf("%s has no %s", name, tensor)
	}
	raw, err := io.ReadAll(f.Reader(entry))
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

// The tower's vectors match those of transformers. Decoding a JPEG differs by one or two in a few pixels.
func TestTower(t *testing.T) {
	m := modeltest.Load(t, "qwen3_5-vision").Model.(models.Seeing)
	for name, bound := range map[string]float64{"fits": 1e-5, "resized": 1e-5, "photo": 1e-2, "several": 1e-5} {
		want := golden(t, "qwen3_5-vision-"+name, "features")
		var got []float32
		for _, picture := range pictures[name] {
			p := prepared(t, picture)
			mlxtest.Do(t, func(e *mlx.Thread) {
				x, err := m.Tower().Encode(t.Context(), mlx.FromSlice(e, p.Pixels, p.Rows*p.Cols, p.Width()), p.Rows, p.Cols)
				if err != nil {
					t.Error(err)
					return
				}
				got = append(got, x.Float32s()...)
			})
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d values, want %d", name, len(got), len(want))
			continue
		}
		var worst, scale float64
		for i, w := range want {
			worst = max(worst, math.Abs(float64(got[i])-float64(w)))
			scale += float64(w) * float64(w)
		}
		scale = math.Sqrt(scale / float64(len(want)))
		t.Logf("%s: largest difference %.2g of the deviation", name, worst/scale)
		if !(worst < bound*scale) {
			t.Errorf("%s: off by %.2g of the deviation", name, worst/scale)
		}
	}
}

// A prompt with images gives the logits of transformers in chunks of any size, packed between sequences without images.
func TestPicturesPacked(t *testing.T) {
	const name = "qwen3_5-vision-several"
	c := modeltest.Load(t, "qwen3_5-vision")
	m := c.Model.(models.Seeing)
	tokens, positions, want := integers(t, name, "tokens"), integers(t, name, "positions"), golden(t, name, "logits")
	mlxtest.Do(t, func(e *mlx.Thread) {
		features := mlx.Reshape(mlx.FromSlice(e, golden(t, name, "features")), -1, 64)
		var row []int // of features, for each image token; otherwise -1
		n := 0
		for _, id := range tokens {
			row = append(row, -1)
			if id == 382 {
				row[len(row)-1] = n
				n++
			}
		}
		for _, size := range []int{1, 4, 7, len(tokens)} {
			before, seq, after := cache.NewSequence(m.Layers()), cache.NewSequence(m.Layers()), cache.NewSequence(m.Layers())
			var worst float64
			for start := 0; start < len(tokens); start += size {
				end := min(start+size, len(tokens))
				part := nn.Part{Seq: seq, Tokens: tokens[start:end], All: true}
				for axis := range part.Grid {
					part.Grid[axis] = positions[axis*len(tokens)+start:][:end-start]
				}
				for i := start; i < end; i++ {
					if row[i] >= 0 {
						part.Vectors = append(part.Vectors, nn.Vectors{Row: i - start,
							X: mlx.Slice(features, mlx.Range(row[i], row[i]+1), mlx.All())})
					}
				}
				e.Scope(func() {
					hidden := m.Forward(nn.NewBatch(e, nn.Part{Seq: before, Tokens: []int32{5, 6}}, part,
						nn.Part{Seq: after, Tokens: []int32{7}}))
					for i, v := range m.Head(hidden).Float32s()[c.Vocab:][:(end-start)*c.Vocab] {
						worst = max(worst, math.Abs(float64(v)-float64(want[start*c.Vocab+i])))
					}
				})
			}
			if !(worst < modeltest.Tolerance*c.Scale) {
				t.Errorf("chunks of %d: difference of %.2g deviations", size, worst/c.Scale)
			}
			for _, s := range []*cache.Sequence{before, seq, after} {
				s.Free()
			}
		}
	})
}

func integers(t *testing.T, name, tensor string) []int32 {
	t.Helper()
	var out []int32
	for _, v := range golden(t, name, tensor) {
		out = append(out, int32(math.Float32bits(v)))
	}
	return out
}

func TestTowerCancelled(t *testing.T) {
	m := modeltest.Load(t, "qwen3_5-vision").Model.(models.Seeing)
	p := prepared(t, "shapes.png")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var err error
	mlxtest.Do(t, func(e *mlx.Thread) {
		_, err = m.Tower().Encode(ctx, mlx.FromSlice(e, p.Pixels, p.Rows*p.Cols, p.Width()), p.Rows, p.Cols)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Tower returns a nil interface for a text model.
func TestNoTower(t *testing.T) {
	if tower := modeltest.Load(t, "qwen3_5-default").Model.(models.Seeing).Tower(); tower != nil {
		t.Errorf("got %v", tower)
	}
}
