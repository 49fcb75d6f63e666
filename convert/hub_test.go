package convert

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/convert/provenance"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/registry/hub/hubtest"
	"github.com/ingotml/ingot/safetensors"
)

// hubOf opens the repositories of a fake hub.
type hubOf struct{ *hub.Client }

func (hubOf) Names(value string) bool { return hub.IsName(value) }

func (h hubOf) Open(ctx context.Context, value string) (safetensors.Folder, error) {
	n, err := hub.ParseName(value)
	if err != nil {
		return nil, err
	}
	f, err := h.Client.Open(ctx, n)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// hubClient returns a client of a fake that never waits before it tries again.
func hubClient(h *hubtest.Hub, opts hub.Options) hubOf {
	opts.Endpoint, opts.Attempts = h.URL(), 40
	opts.Stall = cmp.Or(opts.Stall, 300*time.Millisecond)
	opts.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return hubOf{hub.New(opts)}
}

func newHub(t *testing.T) *hubtest.Hub {
	t.Helper()
	h := hubtest.New()
	t.Cleanup(h.Close)
	return h
}

func newStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// createFrom creates an image with 4-bit weights and returns its digest.
func createFrom(
	ctx context.Context, s *store.Store, from string, remote Remote, progress func(write.Event),
) (Result, error) {
	name, _ := manifest.ParseName("m")
	file := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: from}}}
	return Create(ctx, s, name, file, Options{
		Remote: remote, Precision: recipe.Precision{Type: quantize.Int4}, Parallel: 2, Progress: progress,
	})
}

// hubFixtures lists checkpoint folders. Without INGOT_TEST_LONG, they are a sample: one of each kind of source and
// layout.
func hubFixtures(t *testing.T) []string {
	t.Helper()
	sample := []string{
		"models/llama-sharded", "models/llama-tied", "models/qwen3_moe-published", "models/qwen3_moe-stacked",
		"models/gemma4-e2b-saved", "models/qwen3_5-published", "models/demo", "sources/fp8-block", "sources/gptq-desc-act",
		"sources/mlx-experts", "sources/nvfp4", "sources/packed-int4-zeros",
	}
	if os.Getenv("INGOT_TEST_LONG") == "" {
		return sample
	}
	var all []string
	for _, room := range []string{"models", "sources"} {
		entries, err := os.ReadDir(filepath.Join("..", "testdata", room))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, room+"/"+e.Name())
		}
	}
	return all
}

// A repository gives the digest of the same folder, whatever fails on the way. If the folder is refused, so is the
// repository.
func TestHubSoak(t *testing.T) {
	h := newHub(t)
	for i, fixture := range hubFixtures(t) {
		t.Run(fixture, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join("..", "testdata", filepath.FromSlash(fixture))
			name := strings.ReplaceAll(fixture, "/", "/x-")
			if _, err := h.AddFolder(name, dir); err != nil {
				t.Fatal(err)
			}
			h.Set(func(h *hubtest.Hub) { h.Faults = hubtest.Faults{Share: 0.3, Seed: uint64(i)} })
			want, refused := createFrom(t.Context(), newStore(t), dir, nil, nil)
			got, err := createFrom(t.Context(), newStore(t), "hf.co/"+name, hubClient(h, hub.Options{}), nil)
			if got.Digest != want.Digest || (err == nil) != (refused == nil) {
				t.Errorf("digest %s, want %s; error %v, want %v", got.Digest, want.Digest, err, refused)
			}
			if err != nil && (errors.Is(err, hub.ErrChecksum) || errors.Is(err, fs.ErrNotExist)) {
				t.Error(err)
			}
		})
	}
}

// An interrupted create resumes, unless the commit has changed.
func TestHubResume(t *testing.T) {
	h := newHub(t)
	dir := tiny(t, tinyConfig, 1).shard(3).write(t, filepath.Join(t.TempDir(), "tiny"))
	repository, err := h.AddFolder("tiny/model", dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := createFrom(t.Context(), newStore(t), dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	interrupt := func() {
		ctx, cancel := context.WithCancel(t.Context())
		var seen atomic.Int32
		_, err := createFrom(ctx, s, "hf.co/tiny/model", hubClient(h, hub.Options{}), func(e write.Event) {
			if seen.Store(int32(e.Tensors)); e.Tensors == 8 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d tensors: %v", seen.Load(), err)
		}
	}
	interrupt()
	got, err := createFrom(t.Context(), s, "hf.co/tiny/model", hubClient(h, hub.Options{}), nil)
	if err != nil || got.Digest != want.Digest || got.Resumed == 0 {
		t.Errorf("%+v, %v; want %s", got, err, want.Digest)
	}
	checkProvenance(t, s, got, repository.Head(), false)
	s = newStore(t)
	whole, err := createFrom(t.Context(), s, "hf.co/tiny/model", hubClient(h, hub.Options{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	checkProvenance(t, s, whole, repository.Head(), true)
	s = newStore(t)
	interrupt()
	files := map[string]hubtest.Content{}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		b, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		files[e.Name()] = hubtest.Bytes(b)
	}
	files["NEWS.md"] = hubtest.Bytes("another commit")
	repository.Commit(files)
	got, err = createFrom(t.Context(), s, "hf.co/tiny/model", hubClient(h, hub.Options{}), nil)
	if err != nil || got.Digest != want.Digest || got.Resumed != 0 {
		t.Errorf("%+v, %v: it resumed what another commit began", got, err)
	}
}

// checkProvenance checks that the record names the repository, the commit, and the etag of each file whose bytes were
// all compared with it: not of weights that an earlier run has read a part of.
func checkProvenance(t *testing.T, s *store.Store, r Result, commit string, compared bool) {
	t.Helper()
	records, err := provenance.Read(t.Context(), s, r.Digest)
	if err != nil || len(records) != 1 {
		t.Fatal(records, err)
	}
	from := records[0].From
	if from.Repository != "hf.co/tiny/model" || from.Commit != commit || len(from.Files) < 4 {
		t.Errorf("%+v", from)
	}
	for _, f := range from.Files {
		weights := strings.HasSuffix(f.Name, ".safetensors")
		if want := map[bool]int{false: 40, true: 64}[weights]; len(f.ETag) != want && (compared || !weights) {
			t.Errorf("%+v", f)
		}
	}
	for _, tensor := range records[0].Tensors {
		if len(tensor.Sources) == 0 || tensor.Sources[0].BLAKE3 == "" {
			t.Errorf("%s has no checksum", tensor.Name)
		}
	}
}

// Bytes that are not the published ones end the create, and leave neither an image nor blobs to resume from.
func TestHubChecksum(t *testing.T) {
	h := newHub(t)
	dir := tiny(t, tinyConfig, 1).write(t, filepath.Join(t.TempDir(), "tiny"))
	repository, err := h.AddFolder("tiny/model", dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "model.safetensors")
	good, _ := os.ReadFile(path)
	bad := bytes.Clone(good)
	bad[len(bad)-1] ^= 1
	repository.Replace("model.safetensors", hubtest.Bytes(bad), true)
	s := newStore(t)
	_, err = createFrom(t.Context(), s, "hf.co/tiny/model", hubClient(h, hub.Options{}), nil)
	if !errors.Is(err, hub.ErrChecksum) {
		t.Fatal(err)
	}
	name, _ := manifest.ParseName("m")
	if _, err := s.Resolve(t.Context(), name); !errors.Is(err, manifest.ErrNotFound) {
		t.Error(err)
	}
	repository.Replace("model.safetensors", hubtest.Bytes(good), true)
	got, err := createFrom(t.Context(), s, "hf.co/tiny/model", hubClient(h, hub.Options{}), nil)
	want, _ := createFrom(t.Context(), newStore(t), dir, nil, nil)
	if err != nil || got.Digest != want.Digest || got.Resumed != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A plan needs the headers only.
func TestHubDryRun(t *testing.T) {
	h := newHub(t)
	dir := filepath.Join("..", "testdata", "models", "demo")
	if _, err := h.AddFolder("tiny/model", dir); err != nil {
		t.Fatal(err)
	}
	file := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: "hf.co/tiny/model"}}}
	p, err := DryRun(t.Context(), nil, file, Options{Remote: hubClient(h, hub.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	var weights int64
	for _, r := range h.Requests() {
		if r.CDN {
			var first, last int64
			if _, err := fmt.Sscanf(r.Range, "bytes=%d-%d", &first, &last); err != nil {
				t.Fatal(r, err)
			}
			weights += last - first + 1
		}
	}
	if weights > p.Totals.SourceBytes/10 {
		t.Errorf("%d bytes of files with %d bytes of weights were read", weights, p.Totals.SourceBytes)
	}
}

// The plan of a repository of 400 GB takes three short requests for each of its shards, many at a time.
func TestHubDryRunHuge(t *testing.T) {
	const config = `{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 32000,
		"hidden_size": 8192, "intermediate_size": 70912, "num_hidden_layers": 100, "num_attention_heads": 64,
		"num_key_value_heads": 64, "max_position_embeddings": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16"}`
	m, err := arch.Detect([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	shards, weights := map[string][]safetensors.Tensor{}, map[string]string{}
	for _, s := range m.Table().Specs {
		var layer int
		_, _ = fmt.Sscanf(s.Name, "model.layers.%d.", &layer)
		file := fmt.Sprintf("model-%05d-of-00100.safetensors", layer+1)
		shards[file] = append(shards[file], safetensors.Tensor{Name: s.Name, DType: safetensors.BF16, Shape: s.Shape})
		weights[s.Name] = file
	}
	index, err := json.Marshal(map[string]any{"weight_map": weights})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]hubtest.Content{"config.json": hubtest.Bytes(config), source.IndexName: hubtest.Bytes(index)}
	var total, headers int64
	for file, tensors := range shards {
		head, placed, err := safetensors.EncodeHeader(tensors, nil)
		if err != nil {
			t.Fatal(err)
		}
		size := int64(len(head)) + placed[len(placed)-1].End
		files[file] = hubtest.Sparse{Head: head, Total: size}
		total, headers = total+size, headers+int64(len(head))
	}
	h := newHub(t)
	h.Add("huge/model", files)
	h.Set(func(h *hubtest.Hub) { h.Latency = 50 * time.Millisecond })
	file := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: "hf.co/huge/model"}}}
	begun := time.Now()
	p, err := DryRun(t.Context(), nil, file, Options{Remote: hubClient(h, hub.Options{Stall: time.Minute})})
	if err != nil {
		t.Fatal(err)
	}
	taken, requests := time.Since(begun), len(h.Requests())
	t.Logf("%d shards, %d GB: %d requests, %d KB, %s", len(shards), total/1e9, requests, h.Sent()/1000, taken)
	if len(shards) != 100 || total < 400e9 || p.Totals.SourceBytes < 400e9 {
		t.Errorf("%d shards of %d bytes, %d of them weights", len(shards), total, p.Totals.SourceBytes)
	}
	// One request finds the signed address, one reads 8 bytes, one reads the header.
	if requests > 3*len(shards)+6 || h.Sent() > headers+2*int64(len(index))+100<<10 {
		t.Errorf("%d requests, %d bytes for headers of %d bytes", requests, h.Sent(), headers)
	}
	// One after the other they would take 15 s.
	if os.Getenv("INGOT_TEST_LONG") != "" && taken > 5*time.Second {
		t.Errorf("it took %s", taken)
	}
}
