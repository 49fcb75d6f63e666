package mlxtest

import (
	"testing"

	"github.com/ingotml/ingot/mlx"
)

// OnEveryISA runs a test of CPU kernels on each instruction set of this processor.
func OnEveryISA(t *testing.T, test func(t *testing.T, e *mlx.Thread)) {
	t.Helper()
	if Open(t).Info().GPU {
		t.Skip("the engine is that of a GPU, which has no kernels of ours")
	}
	var before mlx.CPUReport
	Do(t, func(e *mlx.Thread) { before = e.CPU() })
	set := func(t *testing.T, o mlx.CPUOptions) (failed error) {
		Do(t, func(e *mlx.Thread) { failed = e.SetCPU(o) })
		return failed
	}
	defer func() {
		if err := set(t, mlx.CPUOptions{Threads: before.Threads, Fast: before.Fast, ISA: before.ISA}); err != nil {
			t.Error(err)
		}
	}()
	for _, isa := range []string{"portable", "avx2", "avx512", "avx512vbmi", "avx512bf16", "zen4", "neon"} {
		if err := set(t, mlx.CPUOptions{Threads: 2, ISA: isa}); err != nil {
			t.Logf("without %s: %v", isa, err)
			continue
		}
		t.Run(isa, func(t *testing.T) { Do(t, func(e *mlx.Thread) { test(t, e) }) })
	}
}
