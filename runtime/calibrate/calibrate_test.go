package calibrate

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

func open(t *testing.T, name string) *load.Model {
	t.Helper()
	thread := mlxtest.Open(t)
	store, entry := converttest.Pack(t, name)
	before := runtimetest.Arrays(t)
	e, err := batch.Open(t.Context(), thread, store, entry, runtime.Options{Float32: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if after := runtimetest.Arrays(t); after != before {
			t.Errorf("%d arrays live after Close, %d before", after, before)
		}
	})
	return e.Model()
}

// windowsOf returns n windows of tokens that do not repeat at once.
func windowsOf(m *load.Model, n, length int) (list [][]int32) {
	vocab := int32(m.Processor.Config.Facts().Vocab)
	at := int32(1)
	for range n {
		var w []int32
		for range length {
			at = (at*31 + 7) % vocab
			w = append(w, at)
		}
		list = append(list, w)
	}
	return list
}

// The second moments of the first layer's input equal those computed from the embedding in float64.
func TestMoments(t *testing.T) {
	const name, hidden, block, eps = "demo", 192, 128, 1e-5
	m := open(t, name)
	windows := windowsOf(m, 2, 100)
	set, err := Run(t.Context(), m, windows, statistics.About{}, Options{Block: block})
	if err != nil {
		t.Fatal(err)
	}
	_, w := modeltest.Weights(t, name)
	var table, scale []float32
	mlxtest.Do(t, func(*mlx.Thread) {
		table = w.Take("model.embed_tokens.weight", 1024, hidden).Float32s()
		scale = w.Take("model.layers.0.input_layernorm.weight", hidden).Float32s()
	})
	want := make([]float64, hidden*hidden)
	rows := 0.0
	for _, token := range slices.Concat(windows...) {
		x := make([]float64, hidden)
		var squares float64
		for i := range x {
			x[i] = float64(table[int(token)*hidden+i])
			squares += x[i] * x[i]
		}
		for i := range x {
			x[i] *= float64(scale[i]) / math.Sqrt(squares/hidden+eps)
		}
		for i := range x {
			for j := range x {
				want[i*hidden+j] += x[i] * x[j]
			}
		}
		rows++
	}
	q := set.Layer("model.layers.0.self_attn.q_proj.weight")
	if q == nil || q != set.Layer("model.layers.0.self_attn.v_proj.weight") || q.Rows[0] != int64(rows) {
		t.Fatalf("the input of q_proj: %+v", q)
	}
	close := func(what string, got float32, want float64) {
		t.Helper()
		if math.Abs(float64(got)-want/rows) > 1e-3*(math.Abs(want/rows)+0.05) {
			t.Fatalf("%s: %v, want %v", what, got, want/rows)
		}
	}
	for i, v := range q.Squares {
		close("mean square", v, want[i*hidden+i])
	}
	for b, n := range []int{128, 64} {
		moments, err := q.Moments(b)
		if err != nil || len(moments) != n*n {
			t.Fatalf("block %d: %d moments, %v", b, len(moments), err)
		}
		for k, v := range moments {
			close("second moment", v, want[(b*block+k/n)*hidden+b*block+k%n])
		}
	}
}

// Every linear layer has statistics, and experts count the rows that chose them.
func TestInputs(t *testing.T) {
	for _, c := range []struct {
		model   string
		tensors []string
		experts string
		chosen  int64 // experts of a row
	}{
		{"demo", []string{"self_attn.o_proj.weight", "mlp.gate_proj.weight", "mlp.down_proj.weight"}, "", 0},
		{"gpt2-published", []string{"mlp.down_proj.weight"}, "", 0},
		{"qwen3_moe-published", []string{"self_attn.k_proj.weight"}, "mlp.experts.gate_up_proj", 2},
	} {
		m := open(t, c.model)
		set, err := Run(t.Context(), m, windowsOf(m, 3, 20), statistics.About{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		names := set.Tensors()
		find := func(part string) *statistics.Layer {
			i := slices.IndexFunc(names, func(n string) bool { return strings.Contains(n, part) })
			if i < 0 {
				t.Fatalf("%s: no statistics of %s, but of %q", c.model, part, names)
			}
			return set.Layer(names[i])
		}
		for _, part := range c.tensors {
			if l := find(part); l.Rows[0] != 60 {
				t.Errorf("%s: %s saw %d rows", c.model, part, l.Rows[0])
			}
		}
		if c.experts == "" {
			continue
		}
		var rows int64
		for _, n := range find(c.experts).Rows {
			rows += n
		}
		if rows == 0 || rows%60 != 0 || !slices.Equal(find(c.experts).Rows, find("mlp.experts.down_proj").Rows) {
			t.Errorf("%s: experts saw %d rows", c.model, rows)
		}
	}
}

// A run that was interrupted gives the same statistics, and a state of another run is not used.
func TestResume(t *testing.T) {
	saveEvery = 0
	t.Cleanup(func() { saveEvery = time.Minute })
	m := open(t, "demo")
	windows := windowsOf(m, 3*foldEvery, 300) // the change is tested after 16
	const window = 300
	run := func(ctx context.Context, o Options) ([]byte, error) {
		set, err := Run(ctx, m, windows, statistics.About{Program: "test"}, o)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if err := set.Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes(), nil
	}
	want, err := run(t.Context(), Options{Block: 128})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Block: 128, State: filepath.Join(t.TempDir(), "state")}
	ctx, cancel := context.WithCancel(t.Context())
	o.Progress = func(done, _ int) {
		if done >= 2*foldEvery*window+window {
			cancel()
		}
	}
	if _, err := run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	first := 0
	o.Progress = func(done, _ int) {
		if first == 0 {
			first = done
		}
	}
	got, err := run(t.Context(), o)
	if err != nil || first != 2*foldEvery*window+window {
		t.Fatalf("resumed with %d tokens: %v", first, err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the resumed run differs")
	}
	first, o.Block = 0, 0
	if _, err := run(t.Context(), o); err != nil || first != window {
		t.Errorf("another run began with %d tokens: %v", first, err)
	}
}

// The built-in texts are documents of all kinds, and share no run of 13 words or signs with the text of comparisons,
// nor with that of the quality benchmark.
func TestBuiltin(t *testing.T) {
	m := open(t, "demo")
	rendered := 0
	kinds, err := Builtin(t.Context(), func(_ context.Context, list []Message) (string, error) {
		rendered++
		if len(list) < 2 || list[0].Role != "user" || list[1].Role != "assistant" {
			t.Errorf("conversation %q", list)
		}
		return list[0].Content, nil
	})
	if err != nil || rendered < 10 || len(kinds) != 4 {
		t.Fatalf("%d kinds, %d conversations: %v", len(kinds), rendered, err)
	}
	if kinds, err = Builtin(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	const run = 13
	words := regexp.MustCompile(`[\pL\pN_]+|[^\pL\pN_\s]`)
	runs := func(text string) map[[run]string]bool {
		set := map[[run]string]bool{}
		for list := words.FindAllString(text, -1); len(list) >= run; list = list[1:] {
			set[[run]string(list[:run])] = true
		}
		return set
	}
	bench, err := os.ReadFile("../../bench/quality/eval.txt")
	if err != nil {
		t.Fatal(err)
	}
	judged, size := runs(quality.Text+"\n"+string(bench)), 0
	if len(judged) < 1000 {
		t.Errorf("the texts of comparisons have %d runs", len(judged))
	}
	for _, d := range slices.Concat(kinds...) {
		size += len(d.Text)
		if !utf8.ValidString(d.Text) || strings.Contains(d.Text, "=====") {
			t.Errorf("a document is damaged: %.40q", d.Text)
		}
		for r := range runs(d.Text) {
			if judged[r] {
				t.Errorf("%q is also in the text of comparisons", r)
			}
		}
	}
	if size < 200_000 {
		t.Errorf("%d bytes", size)
	}
	windows, err := Windows(t.Context(), m.Processor, kinds)
	if err != nil || len(windows) < 64 {
		t.Fatalf("%d windows, %v", len(windows), err)
	}
	for _, w := range windows {
		if len(w) > Window || len(w) < least {
			t.Errorf("a window of %d tokens", len(w))
		}
	}
}

func TestEmptyText(t *testing.T) {
	m := open(t, "demo")
	windows, err := Windows(t.Context(), m.Processor, [][]Document{{{Text: ""}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), m, windows, statistics.About{}, Options{}); !errors.Is(err, ErrText) {
		t.Errorf("an empty text: %v", err)
	}
}

// The sample has text of each kind, and about the size that was asked for.
func TestSample(t *testing.T) {
	text := Sample(4 << 10)
	if n := len(text); n < 3<<10 || n > 4<<10+100 {
		t.Errorf("%d bytes", n)
	}
	kinds, err := Builtin(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, kind := range kinds {
		if first, _, _ := strings.Cut(kind[0].Text, "\n"); !strings.Contains(text, first) {
			t.Errorf("nothing of text %d", i)
		}
	}
	if Digest(kinds) == Digest(kinds[:1]) {
		t.Error("other documents have the same digest")
	}
}
