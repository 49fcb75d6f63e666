package mlx

import (
	"os"
	"testing"

	"github.com/ingotml/ingot/mlx/engine"
)

func TestSetDefaults(t *testing.T) {
	const tf32, kernels = "MLX_ENABLE_TF32", "MLX_PTX_CACHE_DIR"
	for _, test := range []struct {
		name     string
		set, dir string // "" sets nothing
		want     map[string]string
	}{
		{"nothing is set", "", "/cache/kernels", map[string]string{tf32: "0", kernels: "/cache/kernels"}},
		{"the user decides", "1", "/cache/kernels", map[string]string{tf32: "1", kernels: "/cache/kernels"}},
		{"without a cache folder", "", "", map[string]string{tf32: "0", kernels: ""}},
	} {
		for _, name := range []string{tf32, kernels} {
			t.Setenv(name, "") // restored at the end
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
		if test.set != "" {
			t.Setenv(tf32, test.set)
		}
		if err := setDefaults(&engine.Engine{Kernels: test.dir}); err != nil {
			t.Fatal(err)
		}
		for name, want := range test.want {
			if got := os.Getenv(name); got != want {
				t.Errorf("%s: %s is %q, want %q", test.name, name, got, want)
			}
		}
	}
}
