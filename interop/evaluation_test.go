package interop

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestEvaluation: lm-evaluation-harness scores a model over /v1/completions as it does with transformers. The demo
// model answers by chance, so that what counts are the log-likelihoods; a real model is compared if INGOT_TEST_REAL
// names it.
func TestEvaluation(t *testing.T) {
	if testing.Short() {
		t.Skip("the harness is installed by setup.sh --full")
	}
	t.Run("demo", func(t *testing.T) { testEvaluation(t, checkpoint(t, "demo"), 0.001, "--float32") })
	t.Run("qwen2.5-coder-0.5b", func(t *testing.T) {
		file := realFile(t, "qwen2.5-coder-0.5b")
		u := newUser(t)
		u.more = []string{"INGOT_ENGINE=" + engine(t)}
		u.ingot("create", "m", file, "--exact")
		dir := filepath.Join(t.TempDir(), "checkpoint")
		u.ingot("export", "m", dir, "--dequantize", "bf16")
		testEvaluation(t, dir, 0.1)
	})
}

// testEvaluation scores a checkpoint with ingot and with transformers in float32. most bounds the mean difference of
// the log-likelihoods.
func testEvaluation(t *testing.T, dir string, most float64, flags ...string) {
	u := newUser(t)
	u.ingot("create", "m", dir)
	s := u.serve(flags...)
	task := filepath.Join(u.home, "task")
	questions, err := filepath.Abs(filepath.Join("evaluation", "questions.py"))
	if err != nil {
		t.Fatal(err)
	}
	u.run(evaluation(t, "bin", "python"), questions, task)
	score := func(model, args string, more ...string) evaluated {
		out := filepath.Join(u.home, model)
		u.more = []string{"HF_HUB_OFFLINE=1", "HF_DATASETS_OFFLINE=1", "HF_HOME=" + u.home, "NO_PROXY=127.0.0.1"}
		u.run(evaluation(t, "bin", "lm_eval"), append([]string{"--model", model, "--model_args", args, "--batch_size", "16",
			"--include_path", task, "--tasks", "common", "--output_path", out, "--log_samples"}, more...)...)
		return readEvaluated(t, out)
	}
	ours := score("local-completions", "model=m,base_url="+s.origin+"/v1/completions,tokenizer_backend=huggingface,"+
		"tokenizer="+dir+",timeout=1200,add_bos_token=True")
	theirs := score("hf", "pretrained="+dir+",dtype=float32,add_bos_token=True", "--device", "cpu")
	t.Logf("acc %.3f and %.3f ± %.3f, acc_norm %.3f and %.3f", ours.acc, theirs.acc, theirs.stderr, ours.norm, theirs.norm)
	if d := math.Abs(ours.acc - theirs.acc); d > theirs.stderr {
		t.Errorf("acc %.3f, with transformers %.3f ± %.3f", ours.acc, theirs.acc, theirs.stderr)
	}
	if d := math.Abs(ours.norm - theirs.norm); d > theirs.stderr {
		t.Errorf("acc_norm %.3f, with transformers %.3f", ours.norm, theirs.norm)
	}
	var sum float64
	greedy := 0
	for i, a := range ours.choices {
		sum += math.Abs(a.likelihood - theirs.choices[i].likelihood)
		if a.greedy == theirs.choices[i].greedy {
			greedy++
		}
	}
	n := len(ours.choices)
	t.Logf("log-likelihoods differ by %.5f in the mean; %d of %d have the same mark for greedy", sum/float64(n), greedy, n)
	if sum/float64(n) > most || greedy < n*98/100 {
		t.Errorf("the log-likelihoods of %d choices differ by %.5f in the mean; %d have the same mark for greedy", n,
			sum/float64(n), greedy)
	}
}

// evaluation returns a file of the harness's environment.
func evaluation(t *testing.T, path ...string) string {
	t.Helper()
	return tool(t, filepath.Join(append([]string{"evaluation"}, path...)...))
}

// evaluated is what the harness writes about a model.
type evaluated struct {
	acc, norm, stderr float64
	choices           []choice // of all questions
}

// choice is what the harness knows of a choice.
type choice struct {
	likelihood float64
	greedy     bool
}

func readEvaluated(t *testing.T, dir string) (e evaluated) {
	t.Helper()
	one := func(pattern string) []byte {
		files, err := filepath.Glob(filepath.Join(dir, "*", pattern))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s in %s: %v, %v", pattern, dir, files, err)
		}
		b, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var results struct {
		Results struct {
			Common map[string]any `json:"common"`
		} `json:"results"`
	}
	if err := json.Unmarshal(one("results_*.json"), &results); err != nil {
		t.Fatal(err)
	}
	value := func(name string) float64 {
		v, ok := results.Results.Common[name].(float64)
		if !ok {
			t.Fatalf("there is no %s: %v", name, results)
		}
		return v
	}
	e.acc, e.norm, e.stderr = value("acc,none"), value("acc_norm,none"), value("acc_stderr,none")
	lines := bufio.NewScanner(strings.NewReader(string(one("samples_common_*.jsonl"))))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var sample struct {
			Responses [][2]any `json:"filtered_resps"`
		}
		if err := json.Unmarshal(lines.Bytes(), &sample); err != nil {
			t.Fatal(err)
		}
		for _, r := range sample.Responses {
			likelihood, greedy := harnessValue(t, r[0]), harnessValue(t, r[1])
			e.choices = append(e.choices, choice{likelihood, greedy != 0})
		}
	}
	if len(e.choices) != 800 {
		t.Fatalf("%d choices", len(e.choices))
	}
	return e
}

// harnessValue returns a value of a sample, which the harness writes as it is or as text. True is 1.
func harnessValue(t *testing.T, v any) float64 {
	t.Helper()
	switch v := v.(type) {
	case float64:
		return v
	case bool:
		if v {
			return 1
		}
		return 0
	case string:
		switch v {
		case "True":
			return 1
		case "False":
			return 0
		}
		f, err := strconv.ParseFloat(v, 64)
		if err == nil {
			return f
		}
	}
	t.Fatalf("%T %v", v, v)
	return 0
}
