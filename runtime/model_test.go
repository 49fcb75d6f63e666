package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/recipe"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/models/modeltest"
)

// pack packs a checkpoint of testdata as an image in a store of its own.
func pack(t *testing.T, name string, more ...modelfile.Command) (*store.Store, *store.Entry) {
	t.Helper()
	return packFrom(t, modeltest.Dir(name), name, more...)
}

// packFrom packs a folder as an image.
func packFrom(t *testing.T, dir, name string, more ...modelfile.Command) (*store.Store, *store.Entry) {
	t.Helper()
	return packAs(t, dir, name, recipe.Precision{}, more...)
}

// packAs packs a folder with the given precision.
func packAs(t *testing.T, dir, name string, precision recipe.Precision, more ...modelfile.Command) (*store.Store,
	*store.Entry) {
	t.Helper()
	store, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	id, err := manifest.ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	file := &modelfile.File{Commands: append([]modelfile.Command{{Name: modelfile.From, Value: dir}}, more...)}
	if _, err := convert.Create(t.Context(), store, id, file, convert.Options{Precision: precision}); err != nil {
		t.Fatal(err)
	}
	entry, err := store.Resolve(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return store, entry
}

// loadModel packs and loads a model. The test fails if arrays are left after the model is closed.
func loadModel(t *testing.T, name string, more ...modelfile.Command) *Local {
	t.Helper()
	thread := mlxtest.Open(t)
	store, entry := pack(t, name, more...)
	before := arrays(t)
	l, err := Load(t.Context(), thread, store, entry, Options{Float32: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if after := arrays(t); after != before {
			t.Errorf("%d arrays live after Close, %d before Load", after, before)
		}
	})
	return l
}

func arrays(t *testing.T) (n int64) {
	t.Helper()
	err := mlxtest.Open(t).Do(context.Background(), func() error { n = mlxtest.Open(t).Memory().Arrays; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// collect runs a request to its end.
func collect(ctx context.Context, e Engine, r Request) (ids []int32, text string, last Event, err error) {
	for ev, err := range e.Generate(ctx, r) {
		if err != nil {
			return ids, text, ev, err
		}
		ids, text, last = append(ids, ev.IDs...), text+ev.Text, ev
	}
	return ids, text, last, nil
}

func TestGenerateGreedy(t *testing.T) {
	l := loadModel(t, "llama-default")
	ref, err := ReadReference(modeltest.Reference("llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	ids, _, last, err := collect(t.Context(), l, Request{Prompt: ref.Tokens, MaxTokens: len(ref.Greedy), IgnoreEOS: true})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ids, ref.Greedy) {
		t.Errorf("ids %v, want %v", ids, ref.Greedy)
	}
	s := last.Stats
	if last.Done != DoneLength || s.PromptTokens != len(ref.Tokens) || s.CachedTokens != 0 || s.Tokens != len(ids) ||
		s.PromptTime <= 0 || s.GenerateTime <= 0 {
		t.Errorf("last event %+v", last)
	}
}

// Log-probabilities follow from the reference's logits, for each token when it is emitted.
func TestGenerateLogProbs(t *testing.T) {
	l := loadModel(t, "llama-default")
	ref, err := ReadReference(modeltest.Reference("llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Prompt: ref.Tokens, MaxTokens: 5, IgnoreEOS: true, LogProbs: true, TopLogProbs: 3}
	r.Sampling.LogitBias = map[int32]float64{ref.Greedy[1]: 1000} // log-probabilities do not include it
	var logs []LogProb
	for e, err := range l.Generate(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		if len(e.LogProbs) != len(e.IDs) {
			t.Errorf("%d log-probabilities of %d tokens", len(e.LogProbs), len(e.IDs))
		}
		logs = append(logs, e.LogProbs...)
	}
	last := ref.Logits[len(ref.Logits)-ref.Vocab:]
	var sum float64
	for _, v := range last {
		sum += math.Exp(float64(v))
	}
	want := func(id int32) float64 { return float64(last[id]) - math.Log(sum) }
	if len(logs) != 5 || logs[0].ID != ref.Greedy[1] || math.Abs(float64(logs[0].LogProb)-want(ref.Greedy[1])) > 1e-3 {
		t.Fatalf("%+v, want token %d with %g first", logs, ref.Greedy[1], want(ref.Greedy[1]))
	}
	for _, o := range logs[0].Top {
		if math.Abs(float64(o.LogProb)-want(o.ID)) > 1e-3 {
			t.Errorf("token %d has %g, want %g", o.ID, o.LogProb, want(o.ID))
		}
	}
	if len(logs[0].Top) != 3 || logs[0].Top[0].ID != ref.Greedy[0] {
		t.Errorf("the most likely are %+v, want token %d first", logs[0].Top, ref.Greedy[0])
	}
	r.TopLogProbs = MostTopLogProbs + 1
	if _, _, _, err := collect(t.Context(), l, r); !errors.Is(err, ErrSampling) {
		t.Errorf("TopLogProbs beyond its bound: %v", err)
	}
}

func TestGenerateEndsAtEOS(t *testing.T) {
	l := loadModel(t, "llama-default")
	ref, err := ReadReference(modeltest.Reference("llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	l.eos = []int32{ref.Greedy[5]}
	want := ref.Greedy[:slices.Index(ref.Greedy, ref.Greedy[5])]
	ids, _, last, err := collect(t.Context(), l, Request{Prompt: ref.Tokens, MaxTokens: 16})
	if err != nil || last.Done != DoneStop || !slices.Equal(ids, want) {
		t.Errorf("ids %v, %s, %v; want %v", ids, last.Done, err, want)
	}
}

// The demo model generates text. A stop text that spans tokens ends it, and no part of the stop text is emitted.
func TestGenerateText(t *testing.T) {
	l := loadModel(t, "demo")
	prompt, err := l.Encode("Once upon a time")
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Prompt: prompt, MaxTokens: 40, Sampling: Sampling{Temperature: 0.7, TopP: 0.9, Seed: new(int64)}}
	ids, text, _, err := collect(t.Context(), l, r)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := l.Tokenizer().Decode(ids, true)
	if err != nil || text != whole {
		t.Errorf("streamed %q, decoded %q, %v", text, whole, err)
	}
	if _, again, _, _ := collect(t.Context(), l, r); again != text {
		t.Errorf("the same seed wrote %q, then %q", text, again)
	}
	if len(strings.Fields(text)) < 10 {
		t.Fatalf("the demo model wrote %q", text)
	}
	stop := text[10:16]
	r.Stop = []string{stop}
	_, stopped, last, err := collect(t.Context(), l, r)
	if want := text[:strings.Index(text, stop)]; err != nil || stopped != want || last.Done != DoneStop {
		t.Errorf("with stop %q: %q, %s, %v; want %q", stop, stopped, last.Done, err, want)
	}
}

func TestGenerateContextEnd(t *testing.T) {
	l := loadModel(t, "llama-default")
	limit := l.Context()
	ids, _, last, err := collect(t.Context(), l, Request{Prompt: make([]int32, limit-3), IgnoreEOS: true})
	if err != nil || len(ids) != 3 || last.Done != DoneLength {
		t.Errorf("%d tokens before the context's end, %s, %v; want 3", len(ids), last.Done, err)
	}
}

func TestGenerateRefuses(t *testing.T) {
	l := loadModel(t, "llama-default")
	for _, test := range []struct {
		name, want string
		r          Request
		is         error
	}{
		{"empty", "the prompt is empty", Request{}, ErrPrompt},
		{"too long", "tokens, the model's context", Request{Prompt: make([]int32, l.Context())}, ErrPrompt},
		{"negative id", "token 1 of the prompt is -5", Request{Prompt: []int32{1, -5}}, ErrPrompt},
		{"id beyond the vocabulary", "token 0 of the prompt is 384", Request{Prompt: []int32{384}}, ErrPrompt},
	} {
		_, _, _, err := collect(t.Context(), l, test.r)
		if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestGenerateCancel(t *testing.T) {
	l := loadModel(t, "llama-default")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var failed error
	for e, err := range l.Generate(ctx, Request{Prompt: []int32{1, 2, 3}, IgnoreEOS: true}) {
		if failed = err; err != nil {
			break
		}
		if n += len(e.IDs); n == 4 {
			cancel()
		}
	}
	if !errors.Is(failed, context.Canceled) || n != 4 {
		t.Errorf("%d tokens, then %v", n, failed)
	}
	// The next request still works.
	if ids, _, _, err := collect(t.Context(), l, Request{Prompt: []int32{1}, MaxTokens: 2, IgnoreEOS: true}); err != nil ||
		len(ids) != 2 {
		t.Errorf("after a cancelled request: %v, %v", ids, err)
	}
}

// A caller that stops reading ends the request.
func TestGenerateAbandoned(t *testing.T) {
	l := loadModel(t, "llama-default")
	before := arrays(t)
	for range l.Generate(t.Context(), Request{Prompt: []int32{1, 2, 3}, IgnoreEOS: true}) {
		break
	}
	if after := arrays(t); after != before {
		t.Errorf("%d arrays live, %d before", after, before)
	}
}

func TestGenerateConcurrently(t *testing.T) {
	l := loadModel(t, "llama-default")
	ref, err := ReadReference(modeltest.Reference("llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			ids, _, _, err := collect(t.Context(), l, Request{Prompt: ref.Tokens, MaxTokens: len(ref.Greedy), IgnoreEOS: true})
			if err != nil || !slices.Equal(ids, ref.Greedy) {
				t.Errorf("ids %v, %v; want %v", ids, err, ref.Greedy)
			}
		})
	}
	wg.Wait()
}

// A forward pass that exceeds the memory budget fails its request; the next request runs.
func TestGenerateOutOfMemory(t *testing.T) {
	l := loadModel(t, "llama-default")
	budget := func(bytes int64) {
		mlxtest.Do(t, func(e *mlx.Thread) { e.SetBudget(bytes) })
	}
	var old int64
	mlxtest.Do(t, func(e *mlx.Thread) { old = e.Memory().Budget })
	budget(1000)
	_, _, _, err := collect(t.Context(), l, Request{Prompt: make([]int32, 40), MaxTokens: 1})
	budget(old)
	if !errors.Is(err, mlx.ErrOutOfMemory) {
		t.Errorf("got %v", err)
	}
	if ids, _, _, err := collect(t.Context(), l, Request{Prompt: []int32{1}, MaxTokens: 2, IgnoreEOS: true}); err != nil ||
		len(ids) != 2 {
		t.Errorf("after it: %v, %v", ids, err)
	}
}

func TestGenerateAfterClose(t *testing.T) {
	l := loadModel(t, "llama-default")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := collect(t.Context(), l, Request{Prompt: []int32{1}}); !errors.Is(err, errClosed) {
		t.Errorf("got %v", err)
	}
}

func TestDefaults(t *testing.T) {
	param := func(key, value string) modelfile.Command {
		return modelfile.Command{Name: modelfile.Parameter, Key: key, Value: value}
	}
	d := loadModel(t, "llama-default").Defaults()
	if d.Sampling.Temperature != 0.8 || d.Sampling.TopK != 40 || d.Sampling.TopP != 0.9 || d.Sampling.RepeatLastN != 64 ||
		d.MaxTokens != 0 {
		t.Errorf("without parameters: %+v", d)
	}
	d = loadModel(t, "llama-default", param("temperature", "0"), param("num_predict", "5"), param("stop", "x"),
		param("stop", "y"), param("seed", "3")).Defaults()
	if d.Sampling.Temperature != 0 || d.MaxTokens != 5 || !slices.Equal(d.Stop, []string{"x", "y"}) ||
		*d.Sampling.Seed != 3 || d.Sampling.TopK != 40 {
		t.Errorf("with parameters: %+v", d)
	}
}

// Tokens that generation_config.json suppresses are never generated. A comparison ignores them.
func TestSuppressedTokens(t *testing.T) {
	ref, err := ReadReference(modeltest.Reference("llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(modeltest.Dir("llama-default"))); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(fmt.Sprintf(`{"suppress_tokens": [%d, 999999, %d]}`, ref.Greedy[0], ref.Greedy[2]))
	store, entry := packFrom(t, dir, "suppressed")
	l, err := Load(t.Context(), mlxtest.Open(t), store, entry, Options{Float32: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sampling := l.Defaults().Sampling
	sampling.Temperature = 0
	ids, _, _, err := collect(t.Context(), l, Request{Prompt: ref.Tokens, MaxTokens: 16, Sampling: sampling,
		IgnoreEOS: true})
	if err != nil || len(ids) != 16 || slices.Contains(ids, ref.Greedy[0]) || slices.Contains(ids, ref.Greedy[2]) {
		t.Errorf("ids %v, %v; want none of %d and %d", ids, err, ref.Greedy[0], ref.Greedy[2])
	}
	if _, greedy, err := l.Compare(t.Context(), ref); err != nil || greedy == nil || !*greedy {
		t.Errorf("compared: greedy %v, %v", greedy, err)
	}

	write(`{"suppress_tokens": "all"}`)
	store, entry = packFrom(t, dir, "wrong")
	if _, err := Load(t.Context(), mlxtest.Open(t), store, entry, Options{}); err == nil ||
		!strings.Contains(err.Error(), "suppress_tokens") {
		t.Errorf("a text for suppress_tokens: %v", err)
	}
}

func TestCompareWithReference(t *testing.T) {
	l := loadModel(t, "llama-default")
	ref, err := ReadReference(modeltest.Reference("llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	c, greedy, err := l.Compare(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxAbs > modeltest.Tolerance*c.Scale || c.MeanKL > 1e-6 || c.Top1 != 1 || greedy == nil || !*greedy ||
		c.Tokens != len(ref.Tokens) {
		t.Errorf("%+v, greedy %v", c, greedy)
	}
	// Another model's reference does not match.
	other, err := ReadReference(modeltest.Reference("llama-tied"))
	if err != nil {
		t.Fatal(err)
	}
	if c, greedy, err = l.Compare(t.Context(), other); err != nil || c.MeanKL < 1e-3 || *greedy {
		t.Errorf("another model's reference: %+v, %v", c, err)
	}
	ref.Vocab, ref.Logits = 2, ref.Logits[:2*len(ref.Tokens)]
	if _, _, err = l.Compare(t.Context(), ref); !errors.Is(err, ErrReference) {
		t.Errorf("a reference of another vocabulary: %v", err)
	}
}

// Weights in their own type stay mapped, and the logits are close to the reference.
func TestLoadMapped(t *testing.T) {
	thread := mlxtest.Open(t)
	if thread.Info().GPU {
		t.Skip("on a GPU weights are not mapped host memory")
	}
	store, entry := pack(t, "llama-default")
	l, err := Load(t.Context(), thread, store, entry, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var mapped int64
	mlxtest.Do(t, func(e *mlx.Thread) { mapped = e.Memory().Mapped })
	if mapped == 0 {
		t.Error("no weights are mapped")
	}
	ref, err := ReadReference(modeltest.Reference("llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	if c, _, err := l.Compare(t.Context(), ref); err != nil || c.MeanKL > 1e-2 {
		t.Errorf("in bfloat16: %+v, %v", c, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	mlxtest.Do(t, func(e *mlx.Thread) { mapped = e.Memory().Mapped })
	if mapped != 0 {
		t.Errorf("%d bytes are still mapped after Close", mapped)
	}
}

func TestCheckImage(t *testing.T) {
	store, entry := pack(t, "llama-default")
	s, err := CheckImage(t.Context(), store, entry)
	if err != nil || s.Tensors == 0 || s.Blobs <= s.Tensors || s.Bytes == 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	norm, ok := entry.Image.Find(manifest.KindTensor, "model.norm.weight")
	if !ok {
		t.Fatal("no model.norm.weight")
	}
	t.Run("tensor gone from the manifest", func(t *testing.T) {
		less := *entry
		less.Image.Layers = slices.DeleteFunc(slices.Clone(entry.Image.Layers),
			func(l manifest.Layer) bool { return l.Name == norm.Name })
		_, err := CheckImage(t.Context(), store, &less)
		if err == nil || !strings.Contains(err.Error(), norm.Name) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("tensor under another name", func(t *testing.T) {
		swapped := *entry
		swapped.Image.Layers = slices.Clone(entry.Image.Layers)
		for i, l := range swapped.Image.Layers {
			if l.Name == norm.Name {
				swapped.Image.Layers[i].Name = "model.layers.0.input_layernorm.weight"
			}
		}
		if _, err := CheckImage(t.Context(), store, &swapped); !errors.Is(err, ErrImage) {
			t.Errorf("got %v", err)
		}
	})
	path := store.BlobPath(norm.Digest)
	t.Run("damaged blob", func(t *testing.T) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-1] ^= 1
		rewrite(t, path, b)
		_, err = CheckImage(t.Context(), store, entry)
		if !errors.Is(err, ErrImage) || !strings.Contains(err.Error(), norm.Name) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("short blob", func(t *testing.T) {
		rewrite(t, path, []byte("x"))
		if _, err := Load(t.Context(), mlxtest.Open(t), store, entry, Options{}); !errors.Is(err, ErrImage) ||
			!strings.Contains(err.Error(), norm.Name) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("missing blob", func(t *testing.T) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := CheckImage(t.Context(), store, entry); !errors.Is(err, manifest.ErrBlobMissing) {
			t.Errorf("got %v", err)
		}
	})
}

// rewrite replaces a read-only blob, as a failing disk would.
func rewrite(t *testing.T, path string, b []byte) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(other, b, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
}

func TestProbe(t *testing.T) {
	l := loadModel(t, "llama-default")
	if n, err := l.Probe(t.Context()); err != nil || n != 8 {
		t.Errorf("%d tokens, %v", n, err)
	}
}
