package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/safetensors"
	"github.com/ingotml/ingot/tokenizer"
)

// cosine returns the cosine of the angle between two vectors.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// embed computes vectors and checks that each has length 1.
func embed(t *testing.T, l *Local, r EmbedRequest) [][]float32 {
	t.Helper()
	e, err := l.Embed(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	tokens := 0
	for i, v := range e.Vectors {
		var squares float64
		for _, x := range v {
			squares += float64(x) * float64(x)
		}
		if math.Abs(squares-1) > 1e-5 {
			t.Errorf("vector %d has the length %g", i, math.Sqrt(squares))
		}
		tokens += len(r.Inputs[i])
	}
	if len(e.Vectors) != len(r.Inputs) || e.Tokens != tokens {
		t.Fatalf("%d vectors of %d tokens, want %d of %d", len(e.Vectors), e.Tokens, len(r.Inputs), tokens)
	}
	return e.Vectors
}

// Vectors equal those from transformers' last hidden states, for every pooling mode and with chunked prefill.
func TestEmbedEqualsTransformers(t *testing.T) {
	f, err := safetensors.Open(filepath.Join("testdata", "embeddings.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"llama-default", "qwen3-saved", "gemma3-text-saved", "qwen3_5-default"} {
		for _, chunk := range []int{0, 7} {
			t.Run(fmt.Sprint(name, " chunk ", chunk), func(t *testing.T) {
				l := cached(t, name, Options{Chunk: chunk})
				var inputs [][]int32
				for i := range 3 {
					x, ok := f.Lookup(fmt.Sprintf("%s/%d/tokens", name, i))
					if !ok {
						t.Fatalf("%s has no input %d of %s", f.Path(), i, name)
					}
					ids, err := elements[int32](f, x)
					if err != nil {
						t.Fatal(err)
					}
					inputs = append(inputs, ids)
				}
				for _, m := range poolModes {
					l.pooling = pooling{modes: []poolMode{m.mode}}
					for i, got := range embed(t, l, EmbedRequest{Inputs: inputs}) {
						x, ok := f.Lookup(fmt.Sprintf("%s/%d/%s", name, i, m.mode))
						if !ok {
							t.Fatalf("%s has no %s", f.Path(), m.mode)
						}
						want, err := elements[float32](f, x)
						if err != nil {
							t.Fatal(err)
						}
						if c := cosine(got, want); !(c > 0.9999) {
							t.Errorf("input %d, %s: cosine %v", i, m.mode, c)
						}
					}
				}
			})
		}
	}
}

// Embedding inputs run beside decoding requests, delay them by no more than a chunk, and do not change their tokens.
func TestEmbedBesideDecoding(t *testing.T) {
	for _, name := range cacheModels {
		t.Run(name, func(t *testing.T) {
			const chunk = 8
			want := newOracle(t, name)
			l := cached(t, name, Options{Chunk: chunk, PrefixCache: 1 << 20})
			r := rand.New(rand.NewPCG(7, 7))
			request := Request{Prompt: randomPrompt(r, l, 9), MaxTokens: 60, IgnoreEOS: true}
			expect := want.want(request.Prompt, request.MaxTokens)
			inputs := make([][]int32, 12)
			for i := range inputs {
				inputs[i] = randomPrompt(r, l, 1+5*i)
			}
			alone := make([][]float32, len(inputs))
			for i := range inputs {
				alone[i] = embed(t, want.Local, EmbedRequest{Inputs: inputs[i : i+1]})[0]
			}
			begun, beside := make(chan struct{}), 0
			l.batcher.onStep = func(plan []batchItem) error {
				rows, speaks := 0, false
				for len(plan) == 1 && plan[0].g.stats.Tokens > 0 && beside == 0 && pendingRequests(l.batcher) == 1 &&
					t.Context().Err() == nil {
					time.Sleep(time.Millisecond) // else the generation may end before an input arrives
				}
				for _, s := range plan {
					if s.g.pooling != nil {
						rows += s.rows
					} else if s.wantsToken {
						speaks = true
					}
				}
				if speaks && rows > 0 {
					beside++
					if rows > chunk+len(inputs) { // each input has at least one row
						t.Errorf("%d rows of inputs in a step", rows)
					}
				}
				return nil
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				var ids []int32
				first := sync.OnceFunc(func() { close(begun) })
				for e, err := range l.Generate(t.Context(), request) {
					if err != nil {
						t.Error(err)
						return
					}
					first()
					ids = append(ids, e.IDs...)
				}
				if !slices.Equal(ids, expect) {
					t.Errorf("%v, want %v", ids, expect)
				}
			})
			<-begun
			for i, got := range embed(t, l, EmbedRequest{Inputs: inputs}) {
				if c := cosine(got, alone[i]); !(c > 0.99999) {
					t.Errorf("input %d: cosine %v with its vector alone", i, c)
				}
			}
			wg.Wait()
			if beside == 0 {
				t.Error("no input ran beside the answer")
			}
		})
	}
}

func TestEmbedErrors(t *testing.T) {
	l := cached(t, "llama-default", Options{})
	limit := int(l.config.Facts().Context)
	long := make([]int32, limit)
	embed(t, l, EmbedRequest{Inputs: [][]int32{long}}) // the longest input that is allowed
	for name, c := range map[string]struct {
		r    EmbedRequest
		kind error
		want string
	}{
		"too long": {EmbedRequest{Inputs: [][]int32{{1}, append(long, 1)}}, ErrPrompt,
			fmt.Sprintf("input 1: it has %d tokens, the model's context %d", limit+1, limit)},
		"empty":             {EmbedRequest{Inputs: [][]int32{{}}}, ErrPrompt, "input 0: the prompt is empty"},
		"no token":          {EmbedRequest{Inputs: [][]int32{{1, -1}}}, ErrPrompt, "token 1"},
		"negative":          {EmbedRequest{Inputs: [][]int32{{1}}, Dimensions: -1}, ErrEmbedding, "-1 dimensions"},
		"too many elements": {EmbedRequest{Inputs: [][]int32{{1}}, Dimensions: 1 << 20}, ErrEmbedding, "dimensions"},
	} {
		if _, err := l.Embed(t.Context(), c.r); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	whole := embed(t, l, EmbedRequest{Inputs: [][]int32{{5, 6, 7}}})[0]
	if got := embed(t, l, EmbedRequest{Inputs: [][]int32{{5, 6, 7}}, Dimensions: 8})[0]; len(got) != 8 ||
		cosine(got, whole[:8]) < 0.9999 {
		t.Errorf("8 dimensions: %v, want those of %v", got, whole[:8])
	}
	if got := embed(t, l, EmbedRequest{}); len(got) != 0 {
		t.Errorf("no inputs give %v", got)
	}

	// After a failed step, each input is retried alone. A canceled context ends the call.
	failed := 0
	l.batcher.onStep = func(plan []batchItem) error {
		if len(plan) > 1 {
			failed++
			return errors.New("a kernel was not there")
		}
		return nil
	}
	l.pooling = pooling{modes: []poolMode{poolMean}}
	inputs := [][]int32{{5, 6, 7}, {8, 9}, {10}}
	together := embed(t, l, EmbedRequest{Inputs: inputs})
	l.batcher.onStep = nil
	for i, got := range embed(t, l, EmbedRequest{Inputs: inputs}) {
		if c := cosine(got, together[i]); !(c > 0.99999) {
			t.Errorf("input %d: cosine %v with its vector after a failure (of %d)", i, c, failed)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Embed(ctx, EmbedRequest{Inputs: inputs}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	l.pooling = pooling{err: fmt.Errorf("it lists no Pooling module: %w", ErrEmbedding)}
	if _, err := l.Embed(t.Context(), EmbedRequest{Inputs: inputs}); !errors.Is(err, ErrEmbedding) {
		t.Errorf("without a pooling: %v", err)
	}
}

// The pooling configuration of a checkpoint is part of its image.
func TestEmbedImagePooling(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(modeltest.Dir("llama-default"))); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("modules.json",
		`[{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},`+
			`{"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"}]`)
	write("1_Pooling/config.json", `{"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":true}`)
	store, entry := packFrom(t, dir, "mean")
	p, err := OpenProcessor(store, entry)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := p.EmbeddingSize(); n != 2*int(p.config.Facts().Hidden) || err != nil ||
		!slices.Equal(p.pooling.modes, []poolMode{poolFirst, poolMean}) {
		t.Errorf("%d elements, %v, by %v", n, err, p.pooling.modes)
	}
	noArrays(t)
	l, err := Load(t.Context(), mlxtest.Open(t), store, entry, Options{Float32: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if v := embed(t, l, EmbedRequest{Inputs: [][]int32{{5, 6, 7}}})[0]; len(v) != 2*int(p.config.Facts().Hidden) {
		t.Errorf("a vector has %d elements", len(v))
	}

	write("1_Pooling/config.json", `{"pooling_mode":"attention"}`)
	store, entry = packFrom(t, dir, "other")
	if p, err = OpenProcessor(store, entry); err != nil {
		t.Fatal(err)
	}
	_, err = p.EmbeddingSize()
	if !errors.Is(err, ErrEmbedding) ||
		!strings.Contains(err.Error(), `1_Pooling/config.json: pooling mode "attention"`) {
		t.Errorf("a pooling that is not known: %v", err)
	}
}

// A text that is cut keeps the tokens that the tokenizer adds around it: for BERT, one before and one after it.
func TestEncodeWithin(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "testdata", "tokenizers", "bert", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Processor{tok: tok}
	const text = "Once upon a time there was a small lamp."
	whole, err := p.Encode(text)
	if err != nil {
		t.Fatal(err)
	}
	n := len(whole)
	for limit, want := range map[int][]int32{
		1: whole[:1], 2: {whole[0], whole[n-1]}, 5: slices.Concat(whole[:4], whole[n-1:]),
		n - 1: slices.Concat(whole[:n-2], whole[n-1:]), n: whole, n + 1: whole,
	} {
		ids, cut, err := p.EncodeWithin(text, limit)
		if err != nil || !slices.Equal(ids, want) || cut != (limit < n) {
			t.Errorf("within %d: %v, %v, %v; want %v of %v", limit, ids, cut, err, want, whole)
		}
	}
}
