package cmd_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
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

// What fit predicts of a checkpoint is what its images have, to the byte, and the memory that a run takes, within 10 %:
// most of it is that of the program, which varies. bench-fit demands 5 % of larger models.
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
	resident := peakOf(t, run)
	for _, of := range predicted.Types {
		t.Logf("%s: %d bytes of memory predicted, %d of source were resident", of.Type, of.Total, resident)
		if ratio := float64(of.Total) / float64(resident); of.Type == "source" && (ratio < 0.9 || ratio > 1.1) {
			t.Errorf("%d bytes of memory predicted, %d were resident: a ratio of %.3f", of.Total, resident, ratio)
		}
	}
}

// peakOf runs a command and returns its largest resident set in bytes. That of its rusage would include this process,
// as which it begins.
func peakOf(t *testing.T, c *exec.Cmd) (peak int64) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid)) // without memory once it has ended
		if _, text, ok := strings.Cut(string(status), "VmHWM:"); ok {
			var kilobytes int64
			if _, err := fmt.Sscan(text, &kilobytes); err != nil {
				t.Fatalf("VmHWM: %v", err)
			}
			peak = kilobytes << 10
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			return peak
		case <-time.After(2 * time.Millisecond):
		}
	}
}
