package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// realExportTie is how far ingot's token may be below llama.cpp's, which multiplies with activations in 8 bits; the
// largest measured difference is 0.35.
const realExportTie = 0.5

// testRealGGUF: llama.cpp loads the export of each type, and chooses the tokens that ingot chooses with the same file,
// up to near-ties.
func testRealGGUF(t *testing.T, u *user, golden realGolden) {
	if testing.Short() {
		t.Skip("needs llama.cpp, which bench/cpu/run.sh --peers-only builds")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(cache, "ingot", "bench-cpu-venv", "bin", "python")
	for _, kind := range []string{"source", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "MXFP4"} {
		file, name := filepath.Join(u.home, "of-"+kind+".gguf"), "exported:"+kind
		u.ingot("export", "smol", file, "--type", kind)
		u.ingot("create", name, file)
		var commands strings.Builder
		for _, p := range golden.Prompts {
			ids, err := json.Marshal(p.Tokens)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&commands, "{\"op\": \"scores\", \"ids\": %s}\n", ids)
		}
		out, errs, err := u.try(commands.String(), python, testdata(t, "..", "bench", "cpu", "llama.py"), file, "2")
		if err != nil {
			t.Errorf("%s: llama.py: %v (bench/cpu/run.sh --peers-only makes the environment)\n%s%s", kind, err, out, errs)
			continue
		}
		lines, worst := strings.Split(strings.TrimSpace(out), "\n"), 0.0
		if len(lines) != len(golden.Prompts) {
			t.Fatalf("%s: llama.py printed %d lines for %d prompts", kind, len(lines), len(golden.Prompts))
		}
		for i, p := range golden.Prompts {
			var response struct{ Scores []float64 }
			if err := json.Unmarshal([]byte(lines[i]), &response); err != nil || len(response.Scores) < 1000 {
				t.Fatalf("%s: llama.py printed %.80q: %v", kind, lines[i], err)
			}
			ids, err := json.Marshal(p.Tokens)
			if err != nil {
				t.Fatal(err)
			}
			got := result[struct{ IDs []int32 }](t, u, string(ids), "run", name, "--prompt-ids", "-", "--temperature", "0",
				"--max-tokens", "1", "--ignore-eos", "--local", "--json").IDs
			if len(got) != 1 {
				t.Fatalf("%s: %d tokens, want 1", kind, len(got))
			}
			margin := slices.Max(response.Scores) - response.Scores[got[0]]
			if worst = max(worst, margin); margin > realExportTie {
				t.Errorf("%s: %q: ingot chooses token %d, which is %.2g below llama.cpp's", kind, p.Text, got[0], margin)
			}
		}
		t.Logf("%s: llama.cpp chooses ingot's tokens up to a margin of %.2g", kind, worst)
	}
}
