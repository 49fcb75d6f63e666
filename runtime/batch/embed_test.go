package batch

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

	"github.com/ingotml/ingot/arch/pooling"
	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/runtime/runtimetest"
	"github.com/ingotml/ingot/safetensors"
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

// embedInputs computes vectors and checks that each has length 1.
func embedInputs(t *testing.T, l *Engine, r runtime.EmbedRequest) [][]float32 {
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
				l := cached(t, name, runtime.Options{Chunk: chunk})
				var inputs [][]int32
				for i := range 3 {
					x, ok := f.Lookup(fmt.Sprintf("%s/%d/tokens", name, i))
					if !ok {
						t.Fatalf("%s has no input %d of %s", f.Path(), i, name)
					}
					ids, err := runtimetest.Elements[int32](f, x)
					if err != nil {
						t.Fatal(err)
					}
					inputs = append(inputs, ids)
				}
				for _, m := range pooling.Modes() {
					l.model.Processor.Pooling = processor.Pooling{Modes: []pooling.Mode{m}}
					for i, got := range embedInputs(t, l, runtime.EmbedRequest{Inputs: inputs}) {
						x, ok := f.Lookup(fmt.Sprintf("%s/%d/%s", name, i, m))
						if !ok {
							t.Fatalf("%s has no %s", f.Path(), m)
						}
						want, err := runtimetest.Elements[float32](f, x)
						if err != nil {
							t.Fatal(err)
						}
						if c := cosine(got, want); !(c > 0.9999) {
							t.Errorf("input %d, %s: cosine %v", i, m, c)
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
			l := cached(t, name, runtime.Options{Chunk: chunk, PrefixCache: 1 << 20})
			r := rand.New(rand.NewPCG(7, 7))
			request := runtime.Request{Prompt: randomPrompt(r, l, 9), MaxTokens: 60, IgnoreEOS: true}
			expect := want.want(request.Prompt, request.MaxTokens)
			inputs := make([][]int32, 12)
			for i := range inputs {
				inputs[i] = randomPrompt(r, l, 1+5*i)
			}
			alone := make([][]float32, len(inputs))
			for i := range inputs {
				alone[i] = embedInputs(t, want.Engine, runtime.EmbedRequest{Inputs: inputs[i : i+1]})[0]
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
			for i, got := range embedInputs(t, l, runtime.EmbedRequest{Inputs: inputs}) {
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
	l := cached(t, "llama-default", runtime.Options{})
	limit := int(l.model.Processor.Config.Facts().Context)
	long := make([]int32, limit)
	embedInputs(t, l, runtime.EmbedRequest{Inputs: [][]int32{long}}) // the longest input that is allowed
	for name, c := range map[string]struct {
		r    runtime.EmbedRequest
		kind error
		want string
	}{
		"too long": {runtime.EmbedRequest{Inputs: [][]int32{{1}, append(long, 1)}}, runtime.ErrPrompt,
			fmt.Sprintf("input 1: it has %d tokens, the model's context %d", limit+1, limit)},
		"empty":    {runtime.EmbedRequest{Inputs: [][]int32{{}}}, runtime.ErrPrompt, "input 0: the prompt is empty"},
		"no token": {runtime.EmbedRequest{Inputs: [][]int32{{1, -1}}}, runtime.ErrPrompt, "token 1"},
		"negative": {runtime.EmbedRequest{Inputs: [][]int32{{1}}, Dimensions: -1}, runtime.ErrEmbedding,
			"-1 dimensions"},
		"too many elements": {runtime.EmbedRequest{Inputs: [][]int32{{1}}, Dimensions: 1 << 20}, runtime.ErrEmbedding,
			"dimensions"},
	} {
		if _, err := l.Embed(t.Context(), c.r); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	whole := embedInputs(t, l, runtime.EmbedRequest{Inputs: [][]int32{{5, 6, 7}}})[0]
	if got := embedInputs(t, l, runtime.EmbedRequest{Inputs: [][]int32{{5, 6, 7}}, Dimensions: 8})[0]; len(got) != 8 ||
		cosine(got, whole[:8]) < 0.9999 {
		t.Errorf("8 dimensions: %v, want those of %v", got, whole[:8])
	}
	if got := embedInputs(t, l, runtime.EmbedRequest{}); len(got) != 0 {
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
	l.model.Processor.Pooling = processor.Pooling{Modes: []pooling.Mode{pooling.Mean}}
	inputs := [][]int32{{5, 6, 7}, {8, 9}, {10}}
	together := embedInputs(t, l, runtime.EmbedRequest{Inputs: inputs})
	l.batcher.onStep = nil
	for i, got := range embedInputs(t, l, runtime.EmbedRequest{Inputs: inputs}) {
		if c := cosine(got, together[i]); !(c > 0.99999) {
			t.Errorf("input %d: cosine %v with its vector after a failure (of %d)", i, c, failed)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Embed(ctx, runtime.EmbedRequest{Inputs: inputs}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	l.model.Processor.Pooling = processor.Pooling{Err: fmt.Errorf("it lists no Pooling module: %w", runtime.ErrEmbedding)}
	if _, err := l.Embed(t.Context(), runtime.EmbedRequest{Inputs: inputs}); !errors.Is(err, runtime.ErrEmbedding) {
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
	store, entry := converttest.PackFrom(t, dir, "mean")
	p, err := processor.Open(store, entry)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := p.EmbeddingSize(); n != 2*int(p.Config.Facts().Hidden) || err != nil ||
		!slices.Equal(p.Pooling.Modes, []pooling.Mode{pooling.First, pooling.Mean}) {
		t.Errorf("%d elements, %v, by %v", n, err, p.Pooling.Modes)
	}
	runtimetest.NoArrays(t)
	l, err := Open(t.Context(), mlxtest.Open(t), store, entry, runtime.Options{Float32: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if v := embedInputs(t, l, runtime.EmbedRequest{Inputs: [][]int32{{5, 6,
		7}}})[0]; len(v) != 2*int(p.Config.Facts().Hidden) {
		t.Errorf("a vector has %d elements", len(v))
	}

	write("1_Pooling/config.json", `{"pooling_mode":"attention"}`)
	store, entry = converttest.PackFrom(t, dir, "other")
	if p, err = processor.Open(store, entry); err != nil {
		t.Fatal(err)
	}
	_, err = p.EmbeddingSize()
	if !errors.Is(err, runtime.ErrEmbedding) ||
		!strings.Contains(err.Error(), `1_Pooling/config.json: pooling mode "attention"`) {
		t.Errorf("a pooling that is not known: %v", err)
	}
}
