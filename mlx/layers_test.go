package mlx_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// Layers made ready give what the operation gives, to the bit, also after what they were made of has been freed.
func TestLayers(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		weight := mlx.RandomNormal(mlx.RandomKey(e, 1), mlx.BFloat16, 96, 128)
		bias := mlx.RandomNormal(mlx.RandomKey(e, 2), mlx.BFloat16, 96)
		packed := mlx.Quantize(weight, 32, 4, mlx.Affine, nil)
		for _, test := range []struct {
			name                          string
			parts                         []*mlx.Array
			formats, groups, bits, biased []int
			heads                         []int
			x                             mlx.DType
			shape                         []int
			joined                        bool
		}{
			{"packed", packed, []int{0}, []int{32}, []int{4}, []int{0}, []int{0}, mlx.BFloat16, []int{3, 128}, false},
			{"float32", packed, []int{0}, []int{32}, []int{4}, []int{0}, []int{0}, mlx.Float32, []int{1, 128}, false},
			{"several", []*mlx.Array{packed[0], packed[1], packed[2], weight, bias}, []int{0, -1}, []int{32, 0}, []int{4, 0}, []int{0, 1}, []int{4, 0}, mlx.BFloat16, []int{20, 128}, false},
			{"joined, lazy weights", []*mlx.Array{mlx.Add(weight, weight), bias}, []int{-1}, []int{0}, []int{0}, []int{1}, []int{2}, mlx.Float16, []int{2, 4, 32}, true},
			{"weights that are not row-major", []*mlx.Array{mlx.Transpose(mlx.Contiguous(mlx.Transpose(weight)))}, []int{-1}, []int{0}, []int{0}, []int{0}, []int{0}, mlx.BFloat16, []int{2, 128}, false},
		} {
			x := mlx.RandomNormal(mlx.RandomKey(e, 3), test.x, test.shape...)
			layers := mlx.NewLayers(test.parts, test.joined, test.formats, test.groups, test.bits, test.biased, test.heads)
			want := mlx.LinearLayers(x, test.parts, test.joined, test.formats, test.groups, test.bits, test.biased, test.heads...)
			got := layers.Apply(x)
			layers.Free()
			layers.Free()
			if len(got) != len(want) {
				t.Errorf("%s: %d results, want %d", test.name, len(got), len(want))
				continue
			}
			for i := range got {
				if !slices.Equal(got[i].Shape(), want[i].Shape()) || got[i].DType() != want[i].DType() {
					t.Errorf("%s: result %d is %v, want %v", test.name, i, got[i], want[i])
				} else if !slices.Equal(got[i].ToBytes(), want[i].ToBytes()) {
					t.Errorf("%s: result %d differs", test.name, i)
				}
			}
		}
	})
}

func TestLayersRefuse(t *testing.T) {
	for _, test := range []struct {
		want string
		call func(e *mlx.Thread)
	}{
		{"too few for the formats", func(e *mlx.Thread) {
			w := mlx.Zeros(e, mlx.Float32, 4, 8)
			mlx.NewLayers([]*mlx.Array{w}, false, []int{-1, -1}, []int{0, 0}, []int{0, 0}, []int{0, 0}, []int{0, 0})
		}},
		{"do not fit", func(e *mlx.Thread) {
			w := mlx.Zeros(e, mlx.Float32, 4, 8)
			l := mlx.NewLayers([]*mlx.Array{w}, false, []int{-1}, []int{0}, []int{0}, []int{0}, []int{0})
			defer l.Free()
			l.Apply(mlx.Zeros(e, mlx.Float32, 2, 9))
		}},
		{"freed", func(e *mlx.Thread) {
			w := mlx.Zeros(e, mlx.Float32, 4, 8)
			l := mlx.NewLayers([]*mlx.Array{w}, false, []int{-1}, []int{0}, []int{0}, []int{0}, []int{0})
			l.Free()
			l.Apply(mlx.Zeros(e, mlx.Float32, 2, 8))
		}},
	} {
		if err := mlxtest.Try(t, test.call); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}
