package load

import (
	"testing"

	"github.com/ingotml/ingot/mlx"
)

// An imported GGUF file has float16 scales and float32 norms, and computes in float16, unless its family is too wide.
func TestMostUsed(t *testing.T) {
	for _, c := range []struct {
		count map[mlx.DType]int
		wide  bool
		want  mlx.DType
	}{
		{map[mlx.DType]int{}, false, mlx.BFloat16},
		{map[mlx.DType]int{mlx.Float16: 211, mlx.Float32: 61}, false, mlx.Float16},
		{map[mlx.DType]int{mlx.Float16: 211, mlx.Float32: 61}, true, mlx.BFloat16},
		{map[mlx.DType]int{mlx.BFloat16: 5, mlx.Float16: 5, mlx.Float32: 5}, false, mlx.BFloat16},
		{map[mlx.DType]int{mlx.BFloat16: 5, mlx.Float32: 6}, true, mlx.Float32},
	} {
		if got := mostUsed(c.count, c.wide); got != c.want {
			t.Errorf("%v, wide %v: %v, want %v", c.count, c.wide, got, c.want)
		}
	}
}
