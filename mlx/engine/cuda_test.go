package engine

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// The real bridge compiles and links against the CUDA wheel. Nothing is loaded, so the test needs neither a GPU nor
// NVIDIA's libraries. It downloads 90 MB with the user's pip.
func TestBridgeOnCUDA(t *testing.T) {
	runtest.CUDA.Only(t)
	host := thisHost()
	mlxOnly, err := lockOf(CUDA13)
	if err != nil {
		t.Fatal(err)
	}
	mlxOnly.packages = slices.DeleteFunc(mlxOnly.packages, func(p lockedPackage) bool { return p.name != "mlx-cuda-13" })
	opts := Options{
		Flavour:  CUDA13,
		CacheDir: t.TempDir(),
		Log:      t.Logf,
		inside:   &inside{lock: mlxOnly, host: &host},
	}
	start := time.Now()
	e, err := Install(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("installed in %.1f s", time.Since(start).Seconds())
	library, err := elf.Open(e.Bridge)
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	needed, err := library.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(needed, "libmlx.so") || slices.ContainsFunc(needed,
		func(name string) bool { return strings.Contains(name, "/") }) {
		t.Errorf("the bridge needs %v", needed)
	}
	runpath, err := library.DynString(elf.DT_RUNPATH)
	if err != nil {
		t.Fatal(err)
	}
	rpath, err := library.DynString(elf.DT_RPATH)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(runpath, rpath...) {
		if path != "$ORIGIN/../mlx/lib" {
			t.Errorf("the bridge looks for libraries in %s", path)
		}
	}
	if _, err := os.Stat(filepath.Join(e.Dir, "mlx", "include", "cccl")); err != nil {
		t.Errorf("headers that MLX compiles kernels against: %v", err)
	}
}
