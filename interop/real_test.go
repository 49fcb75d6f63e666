package interop

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReal checks ingot with a model that people use, SmolLM2-135M-Instruct, imported from a GGUF file. The goldens are
// those of transformers and llama.cpp; see testdata/gen/real.
func TestReal(t *testing.T) {
	file := realFile(t, "smollm2")
	u := newUser(t)
	u.more = []string{"INGOT_ENGINE=" + engine(t)}
	u.ingot("create", "smol", file)
	golden := readGolden(t)
	t.Run("logits", func(t *testing.T) { testRealLogits(t, u, "smol", "smollm2", 10, realMaxLogit) })
	t.Run("greedy text", func(t *testing.T) { testRealGreedy(t, u, "smol", golden) })
	texts := readReal[realGolden](t, "real", "smollm2.json").Texts
	t.Run("tokens", func(t *testing.T) { testRealTokens(t, u, "smol", texts, nil) })
	t.Run("quantized", func(t *testing.T) { testRealQuantized(t, u, file, golden) })
	t.Run("clients", func(t *testing.T) { testRealClients(t, u) })
	t.Run("push and pull", func(t *testing.T) { testRealPull(t, u, "smol", "Paris") })
	t.Run("export", func(t *testing.T) { testRealExport(t, u) })
	t.Run("gguf", func(t *testing.T) { testRealGGUF(t, u, golden) })
}

// realGolden is what llama.cpp computes.
type realGolden struct {
	Prompts []struct {
		Text           string
		Tokens, Greedy []int32
		Near           []map[int32]float64 // at each step, the tokens with nearly the largest logit: how far below
	}
	Text struct {
		Predicted  int
		Perplexity float64
	}
	Texts [][]int32 // tokens of the texts in testdata/gen/real/texts.json
}

// realFile returns the path of a model as a GGUF file. INGOT_TEST_REAL lists the models to test.
func realFile(t *testing.T, model string) string {
	t.Helper()
	if !slices.Contains(strings.Fields(os.Getenv("INGOT_TEST_REAL")), model) {
		t.Skip("runs with INGOT_TEST_REAL=\"... " + model + " ...\" only; make test-real sets it")
	}
	return fetchReal(t, model)
}

// fetchReal returns the path of a model as a GGUF file, which is downloaded the first time.
func fetchReal(t *testing.T, model string) string {
	t.Helper()
	fetch := exec.CommandContext(t.Context(), testdata(t, "real", "fetch.sh"), model)
	fetch.Stderr = os.Stderr
	out, err := fetch.Output()
	if err != nil {
		t.Fatalf("fetch.sh %s: %v", model, err)
	}
	return strings.TrimSpace(string(out))
}

func testdata(t *testing.T, path ...string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(append([]string{"..", "testdata"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// readReal reads a JSON file of testdata.
func readReal[T any](t *testing.T, path ...string) (v T) {
	t.Helper()
	b, err := os.ReadFile(testdata(t, path...))
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		t.Fatalf("%v: %v", path, err)
	}
	return v
}

func readGolden(t *testing.T) realGolden {
	t.Helper()
	g := readReal[realGolden](t, "real", "llamacpp.json")
	if len(g.Prompts) != 5 || g.Text.Predicted < 1000 {
		t.Fatalf("the golden has %d prompts and %d tokens", len(g.Prompts), g.Text.Predicted)
	}
	return g
}

// result runs ingot and parses the JSON that it prints.
func result[T any](t *testing.T, u *user, stdin string, args ...string) (v T) {
	t.Helper()
	out, errs, err := u.try(stdin, ingot, args...)
	if e := json.Unmarshal([]byte(out), &v); err != nil || e != nil {
		t.Fatalf("ingot %s: %v, %v\n%s%s", strings.Join(args, " "), err, e, out, errs)
	}
	return v
}

// testRealLogits compares float32 logits and a greedy continuation with those of transformers.
func testRealLogits(t *testing.T, u *user, name, golden string, rows int, limit float64) {
	v := result[struct {
		Tokens      int
		MaxAbs      float64 `json:"max_abs"`
		Top1        float64
		GreedyEqual bool `json:"greedy_equal"`
		OK          bool
	}](t, u, "", "verify", name, "--float32", "--reference", testdata(t, "real", golden+".safetensors"), "--json")
	t.Logf("transformers' logits: %+v", v)
	if !v.OK || v.Tokens != rows || v.Top1 != 1 || !v.GreedyEqual || v.MaxAbs > limit {
		t.Errorf("%+v", v)
	}
}

const (
	// realMaxLogit is the largest difference of a logit from transformers', 5 times the measured one. The standard
	// deviation of the logits is 6.9.
	realMaxLogit = 5e-4
	// realNearTie is how near llama.cpp's logits of two tokens must be if ingot chooses the other one than llama.cpp,
	// which multiplies with activations in 8 bits.
	realNearTie    = 0.3   // the largest measured difference is 0.23
	realPerplexity = 0.005 // largest relative difference from llama.cpp's perplexity
)

// testRealGreedy compares greedy texts with those of llama.cpp. After a near-tie, it goes on from llama.cpp's text.
func testRealGreedy(t *testing.T, u *user, name string, golden realGolden) {
	for i, p := range golden.Prompts {
		ids := result[[]int32](t, u, p.Text, "tokenize", name, "--special")
		if !slices.Equal(ids, p.Tokens) {
			t.Errorf("%q has the tokens %v, want %v", p.Text, ids, p.Tokens)
			continue
		}
		var ties []float64
		for at := 0; at < len(p.Greedy); {
			prompt, err := json.Marshal(slices.Concat(p.Tokens, p.Greedy[:at]))
			if err != nil {
				t.Fatal(err)
			}
			want := p.Greedy[at:]
			got := result[struct{ IDs []int32 }](t, u, string(prompt), "run", name, "--prompt-ids", "-", "--temperature", "0",
				"--max-tokens", number10(len(want)), "--ignore-eos", "--local", "--json").IDs
			if len(got) != len(want) {
				t.Fatalf("%q: %d tokens, want %d", p.Text, len(got), len(want))
			}
			same := 0
			for same < len(want) && got[same] == want[same] {
				same++
			}
			if at += same; at == len(p.Greedy) {
				break
			}
			margin, near := p.Near[at][got[same]]
			if !near || margin > realNearTie {
				t.Errorf("%q: token %d is %d, want %d; llama.cpp has near it %v", p.Text, at, got[same], p.Greedy[at], p.Near[at])
			}
			ties = append(ties, margin)
			at++
		}
		t.Logf("prompt %d: equal to llama.cpp's but for %d near-ties with margins %v", i+1, len(ties), ties)
	}
}

func number10(n int) string { b, _ := json.Marshal(n); return string(b) }

// testRealQuantized compares the perplexity with llama.cpp's, and quantized models with the import.
func testRealQuantized(t *testing.T, u *user, file string, golden realGolden) {
	type estimate struct{ Value float64 }
	for _, c := range []struct {
		kind  string  // of a quantized image, or of an exported GGUF file if in capitals
		maxKL float64 // nats, 1.2 times the measured divergence
	}{
		{"int8", 0.00185}, {"int4", 0.123}, {"mxfp4", 0.221}, {"nvfp4", 0.123},
		{"Q8_0", 0.00141}, {"Q4_0", 0.319}, {"MXFP4", 0.54},
	} {
		name, exports := "smol:"+c.kind, c.kind == strings.ToUpper(c.kind)
		if exports && testing.Short() {
			t.Logf("%s: exports are a part of the long form", c.kind)
			continue
		}
		if exports {
			exported := filepath.Join(u.home, c.kind+".gguf")
			u.ingot("export", "smol", exported, "--type", c.kind)
			u.ingot("create", name, exported)
		} else {
			u.ingot("create", name, file, "--quantize", c.kind)
		}
		v := result[struct {
			Tokens         int
			BasePerplexity estimate `json:"base_perplexity"`
			Perplexity     estimate
			MeanKL         estimate `json:"mean_kl"`
			Top1           estimate
		}](t, u, "", "verify", name, "--against", "smol", "--json")
		t.Logf("%s: %+v", name, v)
		if v.Tokens != golden.Text.Predicted {
			t.Errorf("%s: %d positions, want %d", name, v.Tokens, golden.Text.Predicted)
		}
		if off := v.BasePerplexity.Value/golden.Text.Perplexity - 1; !(math.Abs(off) < realPerplexity) {
			t.Errorf("%s: the import's perplexity is %g, llama.cpp's %g: %+.2f %%", name, v.BasePerplexity.Value,
				golden.Text.Perplexity, 100*off)
		}
		if !(v.MeanKL.Value > 0 && v.MeanKL.Value < c.maxKL) {
			t.Errorf("%s: the mean divergence is %g, want at most %g", name, v.MeanKL.Value, c.maxKL)
		}
	}
}

// testRealClients runs the official clients of three APIs, which testdata/clients/setup.sh installs.
func testRealClients(t *testing.T, u *user) {
	template, err := os.ReadFile(testdata(t, "real", "tools.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	modelfile := filepath.Join(u.home, "Modelfile")
	text := "FROM smol\nPARSER llama3\nTEMPLATE \"\"\"" + string(template) + "\"\"\"\n"
	if err := os.WriteFile(modelfile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	u.ingot("create", "calls", "-f", modelfile)
	s := u.serve()
	c := exec.CommandContext(t.Context(), testdata(t, "..", ".cache", "clients-venv", "bin", "python"),
		testdata(t, "clients", "real.py"), "-v")
	c.Env = append(u.env(), "INGOT_URL="+s.origin, "INGOT_CHAT_MODEL=smol", "INGOT_CALL_MODEL=calls", "NO_PROXY=*")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("real.py: %v (testdata/clients/setup.sh makes the environment)\n%s", err, out)
	}
	t.Logf("%s", out)
}

// testRealPull pushes the model to a registry, and another user runs what they pull.
func testRealPull(t *testing.T, u *user, model, want string) {
	name := startOlareg(t, true) + "/library/" + model + ":published"
	u.ingot("tag", model, name)
	digest := u.ingot("push", name)
	other := newUser(t)
	other.more = u.more
	equal(t, "pulled digest", other.ingot("pull", name), digest)
	other.ingot("verify", name)
	response := other.ingot("run", name, "What is the capital of France?", "--temperature", "0", "--max-tokens", "40",
		"--local")
	if !strings.Contains(response, want) {
		t.Errorf("the response is %q", response)
	}
}

// testRealExport loads exports with mlx-lm and transformers. Both compute the logits of the same tokens.
func testRealExport(t *testing.T, u *user) {
	if testing.Short() {
		t.Skip("needs mlx-lm and transformers, which interop/setup.sh installs with --full only")
	}
	packed, plain := filepath.Join(u.home, "packed"), filepath.Join(u.home, "plain")
	u.ingot("export", "smol", packed)
	u.ingot("export", "smol", plain, "--dequantize", "f32")
	script(t, u, "mlx_scores.py", packed, plain)
	python := testdata(t, "..", ".cache", "gen-venv", "bin", "python")
	scores, err := filepath.Abs("golden_scores.py")
	if err != nil {
		t.Fatal(err)
	}
	out, errs, err := u.try("", python, scores, plain, testdata(t, "real", "smollm2.safetensors"))
	if err != nil {
		t.Errorf("golden_scores.py: %v (testdata/gen/setup.sh makes the environment)\n%s%s", err, out, errs)
	}
	t.Log(out)
}
