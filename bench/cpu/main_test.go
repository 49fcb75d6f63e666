package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		line string
		want command
	}{
		{`{"op":"decode"}`, command{Op: "decode", Depth: 1, Tokens: 64, Rounds: 8, Drafts: 3, Right: 0.7}},
		{
			`{"op":"decode","math":"fast","depth":2048,"tokens":3}`,
			command{Op: "decode", Math: "fast", Depth: 2048, Tokens: 3, Rounds: 8, Drafts: 3, Right: 0.7},
		},
		{
			`{"op":"rows","rounds":2,"flash":true}`,
			command{Op: "rows", Depth: 1, Tokens: 64, Rounds: 2, Drafts: 3, Right: 0.7},
		},
	} {
		got, err := parse([]byte(c.line))
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.line, got, err, c.want)
		}
	}
	for _, line := range []string{``, `decode`, `{}`, `{"op":"fly"}`, `{"op":"decode","depth":-1}`,
		`{"op":"decode","tokens":0}`, `{"op":"rows","rounds":-2}`,
		`{"op":"spec","drafts":17}`, `{"op":"spec","right":1.5}`} {
		if _, err := parse([]byte(line)); !errors.Is(err, errCommand) {
			t.Errorf("%q: %v, want %v", line, err, errCommand)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
}

func TestRead(t *testing.T) {
	parse := func(config string) arch.Model {
		t.Helper()
		m, err := arch.Detect([]byte(config))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	moe := parse(`{"model_type":"qwen3_moe","vocab_size":100,"hidden_size":64,"num_hidden_layers":1,
		"num_attention_heads":2,"num_key_value_heads":1,"head_dim":32,"num_experts":16,"num_experts_per_tok":4,
		"moe_intermediate_size":32,"intermediate_size":64,"tie_word_embeddings":false}`)
	oss := parse(`{"model_type":"gpt_oss","vocab_size":100,"hidden_size":64,"num_hidden_layers":1,"num_attention_heads":2,
		"num_key_value_heads":1,"head_dim":32,"num_local_experts":32,"num_experts_per_tok":4,"intermediate_size":64}`)
	if got := read(oss, "model.layers.0.mlp.experts.gate_up_proj.weight", 4800, false); got != 600 {
		t.Errorf("experts of gpt_oss: %d bytes, want 600", got)
	}
	for _, c := range []struct {
		name string
		tied bool
		want int64
	}{
		{"model.embed_tokens.weight", false, 48},
		{"model.embed_tokens.weight", true, 4800},
		{"model.embed_tokens_per_layer.weight", true, 48},
		{"model.layers.0.mlp.experts.down_proj", false, 1200},
		{"model.layers.0.mlp.gate.weight", false, 4800},
	} {
		if got := read(moe, c.name, 4800, c.tied); got != c.want {
			t.Errorf("%s, tied %v: %d bytes, want %d", c.name, c.tied, got, c.want)
		}
	}
}

// load packs the demo model as int4 and loads it.
func load(t *testing.T) *bench {
	t.Helper()
	thread := mlxtest.Open(t)
	store, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	name, err := manifest.ParseName("demo")
	if err != nil {
		t.Fatal(err)
	}
	file := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: modeltest.Dir("demo")}}}
	if _, err := convert.Create(t.Context(), store, name, file,
		convert.Options{Precision: recipe.Precision{Type: quantize.Int4, Uniform: true}}); err != nil {
		t.Fatal(err)
	}
	entry, err := store.Resolve(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBench(t.Context(), thread, mlx.CPUOptions{Threads: 1}, store, entry)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return b
}

// Every op prints a line of plausible figures and leaks no array.
func TestServe(t *testing.T) {
	b := load(t)
	arrays := func() (n int64) {
		mlxtest.Do(t, func(e *mlx.Thread) { n = e.Memory().Arrays })
		return n
	}
	before := arrays()
	lines := []string{
		`{"op":"info"}`,
		`{"op":"decode","depth":20,"tokens":3}`,
		`{"op":"prefill","tokens":30,"math":"fast"}`,
		`{"op":"rows","rounds":2,"depth":5}`,
		`{"op":"profile","tokens":2}`,
		`{"op":"scores","tokens":3}`,
		`{"op":"skipped","tokens":5}`,
		`{"op":"spec","tokens":20}`,
		`{"op":"growth","depth":1000,"tokens":2}`,
	}
	var out bytes.Buffer
	if err := serve(t.Context(), b, strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	var info infoJSON
	var decode, prefill timing
	var rows rowsJSON
	var profile profileJSON
	var scores scoresJSON
	var skipped skippedJSON
	var spec specJSON
	var growth growthJSON
	d := json.NewDecoder(&out)
	for _, v := range []any{&info, &decode, &prefill, &rows, &profile, &scores, &skipped, &spec, &growth} {
		if err := d.Decode(v); err != nil {
			t.Fatal(err)
		}
	}
	if info.Threads != 1 || info.ISA == "" || info.BytesPerToken <= 0 {
		t.Errorf("info: %+v", info)
	}
	if decode.Tokens != 3 || decode.Seconds <= 0 || prefill.Tokens != 30 || prefill.Seconds <= 0 {
		t.Errorf("decode %+v, prefill %+v", decode, prefill)
	}
	if rows.One <= 0 || rows.Draft <= 0 || rows.Streams <= 0 {
		t.Errorf("rows: %+v", rows)
	}
	if profile.Wall <= 0 || profile.Kernels < 0 || profile.Build <= 0 || profile.Wait <= 0 {
		t.Errorf("profile: %+v", profile)
	}
	if len(scores.IDs) != 3 || len(scores.Scores) != b.vocab {
		t.Errorf("scores: %d of %d", len(scores.Scores), b.vocab)
	}
	if skipped.Last <= 0 || skipped.All <= 0 {
		t.Errorf("skipped: %+v", skipped)
	}
	if spec.Plain.Seconds <= 0 || spec.Draft.Seconds <= 0 || spec.Accepted == 0 || spec.Accepted == spec.Drafted ||
		spec.Steps+spec.Accepted != 21 {
		t.Errorf("spec: %+v", spec)
	}
	short, long := growth.Short, growth.Long
	if short.Depth != 62 || long.Depth != 1000 || short.Token <= 0 || long.Token <= 0 {
		t.Errorf("growth: %+v", growth)
	}
	if long.Attention <= 0 || long.Positions <= short.Positions || long.Fixed != short.Fixed {
		t.Errorf("growth: %+v", growth)
	}
	if after := arrays(); after != before {
		t.Errorf("%d arrays after, %d before", after, before)
	}
}

func TestServeEndsAtTheFirstError(t *testing.T) {
	b := load(t)
	var out bytes.Buffer
	err := serve(t.Context(), b, strings.NewReader("{\"op\":\"info\",\"math\":\"sloppy\"}\n{\"op\":\"info\"}\n"), &out)
	if err == nil || out.Len() > 0 {
		t.Errorf("error %v, output %q", err, out.String())
	}
}

func TestDistanceAndProduct(t *testing.T) {
	if got := distance([]float64{3, 4.5}, []float64{3, 4}); got != 0.1 {
		t.Errorf("distance %v, want 0.1", got)
	}
	x, w := make([]float64, 2*accuracyColumns), make([]float64, accuracyOutputs*accuracyColumns)
	x[1], x[accuracyColumns] = 2, 3
	w[accuracyColumns+1], w[0] = 5, 7
	y := product(x, w)
	if len(y) != 2*accuracyOutputs || y[1] != 10 || y[accuracyOutputs] != 21 {
		t.Errorf("products %v %v of %d", y[1], y[accuracyOutputs], len(y))
	}
}

func TestBFloat(t *testing.T) {
	for _, c := range []struct {
		v    float32
		want uint16
	}{{1, 0x3f80}, {-2, 0xc000}, {1 + 1.0/256, 0x3f80}, {1 + 3.0/256, 0x3f82}, {0, 0}} {
		if got := bfloat(c.v); got != c.want {
			t.Errorf("%v is %#x, want %#x", c.v, got, c.want)
		}
	}
}
