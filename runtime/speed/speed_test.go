package speed_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/runtime/speed"
)

// Every kind of state, layers that run apart and models that run whole. No speed is expected: only that there is one,
// and that no memory is left.
func TestPredict(t *testing.T) {
	var e *mlx.Thread
	mlxtest.Do(t, func(of *mlx.Thread) { e = of })
	for _, name := range []string{"demo", "gemma3-published", "nemotron_h-published", "deepseek_v4-published",
		"gemma3n-published", "zamba2-published",
	} {
		t.Run(name, func(t *testing.T) {
			config, err := os.ReadFile(filepath.Join("..", "..", "testdata", "models", name, "config.json"))
			if err != nil {
				t.Fatal(err)
			}
			m, err := arch.Detect(config)
			if err != nil {
				t.Fatal(err)
			}
			before := e.Memory().Arrays
			sets := [][]speed.Tensor{tensors(m), tensors(m)}
			p, err := speed.Predict(context.Background(), e, m, sets, speed.Use{Context: 300})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range p.Speeds {
				for what, v := range map[string]float64{"decode": s.Decode, "at the context": s.Deep, "prefill": s.Prefill} {
					if !(v > 0) || math.IsInf(v, 0) {
						t.Errorf("%s: %v tokens per second", what, v)
					}
				}
				if s.Deep > s.Decode {
					t.Errorf("%v tokens per second at the context, %v at the beginning", s.Deep, s.Decode)
				}
			}
			if len(p.Speeds) != len(sets) || p.RowBytes < 2*m.Facts().Hidden || p.Constants < 0 {
				t.Errorf("%+v", p)
			}
			if left := e.Memory().Arrays - before; left != 0 {
				t.Errorf("%d arrays are left", left)
			}
		})
	}
}

// tensors are those of a model's table, not quantized.
func tensors(m arch.Model) (all []speed.Tensor) {
	for _, s := range m.Table().Specs {
		if part := m.Table().PartOf(s.Name); s.Optional || part != "" && part != "text" {
			continue
		}
		a := blob.Array{Name: s.Name, DType: "BF16", Shape: s.Shape, Bytes: 2}
		if len(s.Types) > 0 {
			a.DType = "F32"
			a.Bytes = 4
		}
		for _, n := range s.Shape {
			a.Bytes *= n
		}
		all = append(all, speed.Tensor{Name: s.Name, Arrays: []blob.Array{a}})
	}
	return all
}
