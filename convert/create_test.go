package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/safetensors"
)

func TestCreate(t *testing.T) {
	c := tiny(t, tinyConfig, 1)
	c.files["generation_config.json"] = `{"eos_token_id": 2}`
	c.files["README.md"] = "about"
	c.files["LICENSE"] = "caf\xe9: not UTF-8, and not read by a program"
	c.files["training_args.bin"] = "not imported"
	c.add("model.safetensors", random(rand.New(rand.NewPCG(9, 9)), "model.layers.0.self_attn.rotary_emb.inv_freq",
		safetensors.F32, 4))
	store := openStore(t)
	f := from(c.write(t, t.TempDir()), modelfile.Command{Name: modelfile.Parameter, Key: "temperature", Value: "0.5"},
		modelfile.Command{Name: modelfile.Parameter, Key: "stop", Value: "<end>"},
		modelfile.Command{Name: modelfile.License, Value: "terms"})
	r := mustCreate(t, store, "tiny", f, Options{})

	entry, err := store.Resolve(t.Context(), modelName(t, "tiny"))
	if err != nil || entry.Digest != r.Digest {
		t.Fatalf("entry %v, %v, want digest %s", entry, err, r.Digest)
	}
	wantConfig := manifest.Config{
		Architecture: "LlamaForCausalLM", ModelType: "llama", Format: "safetensors", DType: "BF16", Params: 2*300*32 +
			2*(2*32+2*32*32+2*16*32+3*32*48) + 32,
		Capabilities: []string{"completion"}, ContextLength: 128, EmbeddingLength: 32,
	}
	if d := cmp.Diff(wantConfig, entry.Image.Config); d != "" {
		t.Error(d)
	}
	var files []string
	for _, l := range entry.Image.Layers[:7] {
		files = append(files, string(l.Kind)+" "+l.Name)
	}
	want := []string{"license LICENSE", "license LICENSE.2", "file README.md", "file config.json",
		"file generation_config.json", "file model.safetensors.index.json", "params params.json"}
	if d := cmp.Diff(want, files); d != "" {
		t.Error(d)
	}
	if got := readLayer(t, store, entry.Image, manifest.KindParams,
		"params.json"); got != `{"stop":["<end>"],"temperature":0.5}` {
		t.Errorf("parameters %s", got)
	}
	if got := readLayer(t, store, entry.Image, manifest.KindLicense, "LICENSE.2"); got != "terms" {
		t.Errorf("licence %s", got)
	}
	if r.Tensors != 21 || r.Bytes != entry.Image.Size() || r.Reused != 0 || len(r.Warnings) != 1 ||
		!strings.HasPrefix(r.Warnings[0], "neither tokenizer.json nor tokenizer.model") {
		t.Errorf("result %+v", r)
	}
	checkTensors(t, store, entry.Image, c)
}

// checkTensors reads every tensor through the image's index and compares it with its source.
func checkTensors(t *testing.T, store *store.Store, img manifest.Image, c *checkpoint) {
	t.Helper()
	var index struct {
		Metadata struct {
			TotalSize int64 `json:"total_size"`
		} `json:"metadata"`
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal([]byte(readLayer(t, store, img, manifest.KindFile, source.IndexName)), &index); err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, l := range img.Layers {
		if l.Kind != manifest.KindTensor {
			continue
		}
		if index.WeightMap[l.Name] != manifest.TensorPath(l.Name) {
			t.Errorf("the index has %s in %q", l.Name, index.WeightMap[l.Name])
		}
		f, err := safetensors.Open(store.BlobPath(l.Digest))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Header().Tensors) != 1 || f.Header().Metadata != nil || f.Header().DataOffset%64 != 0 {
			t.Errorf("%s: header %+v", l.Name, f.Header())
		}
		tn, _ := f.Lookup(l.Name)
		got, err := io.ReadAll(f.Reader(tn))
		if err != nil {
			t.Fatal(err)
		}
		total += int64(len(got))
		found := false
		for _, list := range c.tensors {
			for _, want := range list {
				if want.Name == l.Name {
					found = true
					if !bytes.Equal(got, want.data) || tn.DType != want.DType || !cmp.Equal(tn.Shape, want.Shape) {
						t.Errorf("%s: the blob differs from its source", l.Name)
					}
				}
			}
		}
		if !found {
			t.Errorf("%s: not in the source", l.Name)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if total != index.Metadata.TotalSize {
		t.Errorf("the index says %d bytes, there are %d", index.Metadata.TotalSize, total)
	}
}

func readLayer(t *testing.T, store *store.Store, img manifest.Image, kind manifest.Kind, name string) string {
	t.Helper()
	l, ok := img.Find(kind, name)
	if !ok {
		t.Fatalf("no %s %s in the image", kind, name)
	}
	data, err := store.ReadBlob(l.Digest, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const tinyTokenizer = `{"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": null, ` +
	`"post_processor": null, "decoder": null,
 "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, ` +
	`"end_of_word_suffix": null, "fuse_unk": false,
  "byte_fallback": false, "ignore_merges": false, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}}`

func TestTokenizer(t *testing.T) {
	c := tiny(t, tinyConfig, 1)
	c.files["tokenizer.json"] = tinyTokenizer
	store := openStore(t)
	r := mustCreate(t, store, "x", from(c.write(t, t.TempDir())), Options{})
	if len(r.Warnings) != 0 {
		t.Errorf("warnings %q", r.Warnings)
	}
	entry, err := store.Resolve(t.Context(), modelName(t, "x"))
	if err != nil || readLayer(t, store, entry.Image, manifest.KindFile, "tokenizer.json") != tinyTokenizer {
		t.Errorf("the image has another tokenizer, or %v", err)
	}
	c.files["tokenizer.json"] = strings.Replace(tinyTokenizer, `"ab": 2`, `"ab": 300`, 1)
	r = mustCreate(t, store, "x", from(c.write(t, t.TempDir())), Options{})
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "301 tokens, the model only 300") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// The digest depends only on contents.
func TestDigestIsReproducible(t *testing.T) {
	first := mustCreate(t, openStore(t), "a", from(tiny(t, tinyConfig, 1).write(t, t.TempDir())), Options{}).Digest
	dir := tiny(t, tinyConfig, 1).write(t, filepath.Join(t.TempDir(), "elsewhere", "moved"))
	store := openStore(t)
	cases := map[string]func() Result{
		"moved":       func() Result { return mustCreate(t, store, "b", from(dir), Options{}) },
		"second time": func() Result { return mustCreate(t, store, "b", from(dir), Options{}) },
		"relative":    func() Result { return mustCreate(t, store, "c", from("moved"), Options{Dir: filepath.Dir(dir)}) },
		"one at once": func() Result { return mustCreate(t, openStore(t), "d", from(dir), Options{Parallel: 1}) },
		"two shards": func() Result {
			return mustCreate(t, openStore(t), "e", from(tiny(t, tinyConfig, 1).shard(2).write(t, t.TempDir())), Options{})
		},
		"five shards": func() Result {
			return mustCreate(t, openStore(t), "f", from(tiny(t, tinyConfig, 1).shard(5).write(t, t.TempDir())), Options{})
		},
	}
	for _, n := range []int{1, 8} {
		cases["GOMAXPROCS "+string(rune('0'+n))] = func() Result {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
			return mustCreate(t, openStore(t), "g", from(dir), Options{})
		}
	}
	for name, create := range cases {
		if got := create().Digest; got != first {
			t.Errorf("%s: digest %s, want %s", name, got, first)
		}
	}
	if other := mustCreate(t, openStore(t), "a", from(tiny(t, tinyConfig, 2).write(t, t.TempDir())),
		Options{}).Digest; other == first {
		t.Error("other weights have the same digest")
	}
}

func TestReuse(t *testing.T) {
	store := openStore(t)
	c := tiny(t, tinyConfig, 1)
	mustCreate(t, store, "base", from(c.write(t, t.TempDir())), Options{})
	before := len(contents(t, store))
	// A fine-tune of one tensor shares the other blobs.
	c.edit("model.norm.weight", func(tn *tensor) { tn.data[0]++ })
	r := mustCreate(t, store, "tuned", from(c.write(t, t.TempDir())), Options{})
	// the tensor; the model; config and manifest; the provenance record and its manifest
	if added := len(contents(t, store)) - before; added != 1+1+2+2 {
		t.Errorf("%d things were added to the store", added)
	}
	if changed := r.Bytes - r.Reused; changed <= 0 || changed > 1000 {
		t.Errorf("%d bytes of %d are new", changed, r.Bytes)
	}
}

func TestTiedHead(t *testing.T) {
	tied := strings.Replace(tinyConfig, `"tie_word_embeddings": false`, `"tie_word_embeddings": true`, 1)
	plain := tiny(t, tied, 1)
	want := mustCreate(t, openStore(t), "a", from(plain.write(t, t.TempDir())), Options{})

	both := tiny(t, tied, 1)
	head := both.tensors["model.safetensors"][0]
	head.Name = "lm_head.weight"
	both.add("model.safetensors", head)
	dir := both.write(t, t.TempDir())
	if got := mustCreate(t, openStore(t), "a", from(dir), Options{}); got.Digest != want.Digest {
		t.Errorf("a second copy of the embedding changes the digest to %s, want %s", got.Digest, want.Digest)
	}
	inv, err := source.Open(dir, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer inv.Close()
	p, err := plan.New(t.Context(), inv, plan.Options{})
	if err != nil || len(p.Dropped) != 1 || p.Dropped[0].Name != "lm_head.weight" || p.Dropped[0].Reason == "" {
		t.Errorf("dropped %+v, %v", p.Dropped, err)
	}

	alone := tiny(t, tied, 1)
	alone.edit("model.embed_tokens.weight", func(tn *tensor) { tn.Name = "lm_head.weight" })
	if got := mustCreate(t, openStore(t), "a", from(alone.write(t, t.TempDir())), Options{}); got.Digest != want.Digest {
		t.Errorf("the embedding under the head's name changes the digest to %s, want %s", got.Digest, want.Digest)
	}

	differs := tiny(t, tied, 1)
	head.data = bytes.Clone(head.data)
	head.data[len(head.data)-1]++
	differs.add("model.safetensors", head)
	_, err = Create(t.Context(), openStore(t), modelName(t, "a"), from(differs.write(t, t.TempDir())), Options{})
	if !errors.Is(err, source.ErrSource) || !strings.Contains(err.Error(), "model.safetensors: tensor lm_head.weight: ") {
		t.Errorf("a head of its own: error %v", err)
	}
}

func TestModelfileLines(t *testing.T) {
	dir := tiny(t, tinyConfig, 1).write(t, t.TempDir())
	file := filepath.Join(dir, source.ConfigName)
	for _, c := range []struct{ text, want string }{
		{"FROM " + dir + "\nTEMPLATE {{ .Prompt", "Modelfile:2:1: chat template cannot be read"},
		{"FROM " + dir + "\nTEMPLATE {% for m in messages %}x", "Modelfile:2:1: template line 1: TemplateSyntaxError"},
		{"FROM " + dir + "\nTEMPLATE x\nTEMPLATE y", "Modelfile:3:1: a second TEMPLATE is not supported"},
		{"FROM " + dir + "\nSYSTEM x\nSYSTEM y", "Modelfile:3:1: a second SYSTEM is not supported"},
		{"FROM " + dir + "\nPARSER x\nPARSER y", "Modelfile:3:1: a second PARSER is not supported"},
		{
			"FROM " + dir + "\nDRAFT x",
			"Modelfile:2:1: there is no such folder, and no model x:latest in the store; pull it first",
		},
		{"FROM " + dir + "\nDRAFT " + dir, "Modelfile:2:1: the DRAFT model is the FROM model itself"},
		{"FROM " + dir + "\nADAPTER x", "Modelfile:2:1: there is no such folder"},
		{
			"FROM " + dir + "\nREQUIRES 1.0",
			"Modelfile:2:1: this is ingot v0.19.3-rc1: update it, or remove the line if another program is meant",
		},
		{"FROM " + dir + "\nFROM " + dir, "Modelfile:2:1: a second FROM is not supported"},
		{"FROM " + file, "Modelfile:1:1: " + file + ": not a folder"},
		{"FROM llama3:8b", "Modelfile:1:1: there is no such folder, and no model llama3:8b in the store; pull it first"},
		{"FROM a b", "Modelfile:1:1: there is no such folder, and it is not a valid model name"},
		{"FROM ./absent", "Modelfile:1:1: there is no such folder or GGUF file: "},
	} {
		f, err := modelfile.Parse("Modelfile", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		store := openStore(t)
		_, err = Create(t.Context(), store, modelName(t, "x"), f, Options{Version: "v0.19.3-rc1"})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %s", c.text, err, c.want)
		}
		if left := contents(t, store); len(left) != 0 {
			t.Errorf("%q: left %q", c.text, left)
		}
	}
	f, err := modelfile.Parse("Modelfile", []byte("FROM "+dir+"\nPARAMETER mirostat 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := mustCreate(t, openStore(t), "x", f, Options{})
	if len(r.Warnings) != 2 || !strings.Contains(r.Warnings[0], "deprecated") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestProgress(t *testing.T) {
	dir := tiny(t, tinyConfig, 1).write(t, t.TempDir())
	var last write.Event
	r := mustCreate(t, openStore(t), "x", from(dir), Options{Progress: func(e write.Event) {
		if e.Bytes < last.Bytes || e.Tensors < last.Tensors {
			t.Errorf("progress goes back from %+v to %+v", last, e)
		}
		last = e
	}})
	if last.Tensors != 21 || last.TotalTensors != 21 || last.Bytes != last.TotalBytes || last.Bytes < r.Bytes*9/10 ||
		last.Resumed != 0 {
		t.Errorf("last event %+v", last)
	}
}

// A run that is cancelled at any point leaves the store unchanged, or the complete model.
func TestCancel(t *testing.T) {
	dir := tiny(t, tinyConfig, 1).write(t, t.TempDir())
	want := mustCreate(t, openStore(t), "x", from(dir), Options{})
	for at := 0; at < 27; at += 3 {
		store := openStore(t)
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		_, err := Create(ctx, store, modelName(t, "x"), from(dir), Options{Parallel: 1 + at%3, Progress: func(write.Event) {
			if n++; n == 1+2*at {
				cancel()
			}
		}})
		cancel()
		if err == nil {
			if _, err := store.Resolve(t.Context(), modelName(t, "x")); err != nil {
				t.Errorf("at %d: done, but %v", at, err)
			}
			continue
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("at %d: error %v", at, err)
		}
		if left := finished(t, store); len(left) != 0 {
			t.Errorf("at %d: left %q", at, left)
		}
		// The next run resumes, and leaves nothing but the model.
		r := mustCreate(t, store, "x", from(dir), Options{})
		if r.Digest != want.Digest {
			t.Errorf("at %d: digest %s, want %s", at, r.Digest, want.Digest)
		}
		checkTidy(t, store)
	}
}

// A failing run does not remove what an earlier one made.
func TestFailureKeepsOthers(t *testing.T) {
	store := openStore(t)
	dir := tiny(t, tinyConfig, 1).write(t, t.TempDir())
	mustCreate(t, store, "x", from(dir), Options{})
	before := finished(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := Create(ctx, store, modelName(t, "y"), from(dir),
		Options{Progress: func(write.Event) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if d := cmp.Diff(before, finished(t, store)); d != "" {
		t.Error(d)
	}
}

// A source that shrinks while it is read is an error that names it, and leaves nothing behind.
func TestSourceShrinks(t *testing.T) {
	dir := tiny(t, tinyConfig, 1).write(t, t.TempDir())
	store := openStore(t)
	cut := false
	_, err := Create(t.Context(), store, modelName(t, "x"), from(dir), Options{Parallel: 1, Progress: func(write.Event) {
		if !cut {
			cut = true
			if err := os.Truncate(filepath.Join(dir, "model.safetensors"), 20000); err != nil {
				t.Error(err)
			}
		}
	}})
	// Tensors read later are truncated; those read earlier are in a file that has changed.
	shrunk := errors.Is(err, safetensors.ErrTruncated) || errors.Is(err, source.ErrSource)
	if !shrunk || !strings.Contains(err.Error(), "model.safetensors: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
	if left := contents(t, store); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}
