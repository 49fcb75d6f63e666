package convert

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

// Variables of a process of TestCalibratedAnywhere.
const (
	anywhereSource     = "INGOT_TEST_CHECKPOINT"
	anywhereStatistics = "INGOT_TEST_STATISTICS"
)

// Calibrated images, compensated and equalized ones too, are the same on processors with other instructions and with
// other numbers of threads.
func TestCalibratedAnywhere(t *testing.T) {
	if os.Getenv(anywhereSource) != "" {
		printDigests(t)
		return
	}
	const width, inner = 128, 256
	layer := "model.layers.0."
	uneven := unevenInputs(t, map[int][][]string{
		width: {{layer + "mlp.gate_proj.weight", layer + "mlp.up_proj.weight"}}, inner: {{layer + "mlp.down_proj.weight"}},
	})
	full := statisticsOf(t, width, 64, calibratedTensor, otherTensor)
	dir := finiteWeights(tiny(t, wideConfig, 1)).write(t, t.TempDir())
	var want string
	for _, with := range []string{
		"", "GOMAXPROCS=1", "GODEBUG=cpu.avx2=off,cpu.fma=off,cpu.avx=off", "GODEBUG=cpu.all=off",
		"INGOT_CPU_ISA=baseline", "INGOT_CPU_ISA=avx2", "INGOT_CPU_THREADS=1",
	} {
		c := exec.Command(os.Args[0], "-test.run=^TestCalibratedAnywhere$", "-test.v")
		files := uneven + string(filepath.ListSeparator) + full
		c.Env = append(os.Environ(), anywhereSource+"="+dir, anywhereStatistics+"="+files, with)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", with, err, out)
		}
		_, digests, _ := strings.Cut(string(out), "digests:")
		digests, _, _ = strings.Cut(digests, "\n")
		if want == "" {
			want = digests
		}
		if len(digests) < 64 || digests != want {
			t.Errorf("%q: %s, want %s", with, digests, want)
		}
	}
}

// printDigests prints the digests of calibrated images.
func printDigests(t *testing.T) {
	fmt.Print("digests:")
	st := openStore(t)
	for i, file := range filepath.SplitList(os.Getenv(anywhereStatistics)) {
		for _, of := range []quantize.Type{quantize.Int4, quantize.Int3.WithGroup(32), quantize.NVFP4} {
			name := fmt.Sprintf("x%d-%s", i, of)
			r := mustCreate(t, st, name, from(os.Getenv(anywhereSource)), Options{
				Precision: recipe.Precision{Type: of}, Calibration: file, Equalize: true,
			})
			fmt.Print(" ", r.Digest)
		}
	}
	fmt.Println()
}
