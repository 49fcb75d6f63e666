package cmd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ingotml/ingot/limits/runtest"
	"github.com/ingotml/ingot/mlx"
)

// fitted is what the test reads of the output of fit.
type fitted struct {
	Types []struct {
		Type  string
		Bytes int64
		Total int64 `json:"total_memory"`
		Speed *struct {
			Decode  float64
			Deep    float64 `json:"decode_at_context"`
			Prefill float64
		}
	}
}

// What fit predicts of a checkpoint is what its images have, to the byte, and the memory that a run takes, within 5 %.
func TestFitPredictsImagesAndRuns(t *testing.T) {
	installed, why := installedEngine()
	runtest.Engine.Need(t, why)
	home := t.TempDir()
	t.Setenv("INGOT_ENGINE", installed)
	t.Setenv(mlx.EnvCPUThreads, "1") // beside other tests
	fit := func(source string, args ...string) (of fitted) {
		out := ingot(t, home, append([]string{"fit", source, "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &of); err != nil {
			t.Fatalf("fit %s: %v", source, err)
		}
		return of
	}
	demo := filepath.Join("..", "testdata", "models", "demo")
	predicted := fit(demo, "--context", "512")
	if len(predicted.Types) < 5 {
		t.Fatalf("only the types %+v", predicted.Types)
	}
	for _, of := range predicted.Types {
		if s := of.Speed; s == nil || !(s.Decode >= s.Deep && s.Deep > 0 && s.Prefill > 0) {
			t.Errorf("%s: speed %+v", of.Type, s)
		}
		if of.Type != "source" && of.Type != "int4" {
			continue
		}
		args := []string{"create", "of-" + of.Type, demo, "--quiet"}
		if of.Type != "source" {
			args = append(args, "-q", of.Type)
		}
		ingot(t, home, args...)
		for _, stored := range fit("of-"+of.Type, "--no-speed").Types {
			if stored.Type == "source" && stored.Bytes != of.Bytes {
				t.Errorf("%s: %d bytes predicted, the image has %d", of.Type, of.Bytes, stored.Bytes)
			}
		}
	}

	ids := filepath.Join(home, "ids")
	var prompt []int
	for i := range 480 {
		prompt = append(prompt, 5+i*7%90)
	}
	text, err := json.Marshal(prompt)
	if err == nil {
		err = os.WriteFile(ids, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	run := command(home, "run", "of-source", "--local", "--prompt-ids", ids, "--max-tokens", "8", "--ignore-eos")
	if err := run.Run(); err != nil {
		t.Fatal(err)
	}
	resident := run.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	for _, of := range predicted.Types {
		t.Logf("%s: %d bytes of memory predicted, %d of source were resident", of.Type, of.Total, resident)
		if ratio := float64(of.Total) / float64(resident); of.Type == "source" && (ratio < 0.95 || ratio > 1.05) {
			t.Errorf("%d bytes of memory predicted, %d were resident: a ratio of %.3f", of.Total, resident, ratio)
		}
	}
}
