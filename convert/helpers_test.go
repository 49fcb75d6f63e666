package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/safetensors"
)

const tinyConfig = `{
  "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300, "hidden_size": 32, ` +
	`"intermediate_size": 48,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16"
}
`

// checkpoint is a model folder under construction: files by name, and tensors by shard.
type checkpoint struct {
	files   map[string]string
	tensors map[string][]tensor
}

type tensor struct {
	safetensors.Tensor
	data []byte
}

// tiny makes a checkpoint in one file with the tensors that its configuration requires. Equal seeds give equal weights.
func tiny(t *testing.T, config string, seed uint64) *checkpoint {
	t.Helper()
	m, err := arch.Detect([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	c := &checkpoint{files: map[string]string{source.ConfigName: config}, tensors: map[string][]tensor{}}
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, s := range m.Table().Specs {
		c.add("model.safetensors", random(rng, s.Name, safetensors.BF16, s.Shape...))
	}
	return c
}

func random(rng *rand.Rand, name string, dtype safetensors.DType, shape ...int64) tensor {
	tn := tensor{Tensor: safetensors.Tensor{Name: name, DType: dtype, Shape: shape}}
	tn.data = make([]byte, tn.Size())
	for i := range tn.data {
		tn.data[i] = byte(rng.Uint32())
	}
	return tn
}

func (c *checkpoint) add(file string, t tensor) { c.tensors[file] = append(c.tensors[file], t) }

// edit changes a tensor in any shard.
func (c *checkpoint) edit(name string, f func(*tensor)) {
	for _, list := range c.tensors {
		for i := range list {
			if list[i].Name == name {
				f(&list[i])
			}
		}
	}
}

func (c *checkpoint) drop(name string) {
	for file, list := range c.tensors {
		c.tensors[file] = slices.DeleteFunc(list, func(t tensor) bool { return t.Name == name })
	}
}

// shard distributes the tensors over n files and makes the index.
func (c *checkpoint) shard(n int) *checkpoint {
	all := c.tensors["model.safetensors"]
	c.tensors = map[string][]tensor{}
	weights := map[string]string{}
	for i, t := range all {
		file := fmt.Sprintf("model-%05d-of-%05d.safetensors", i%n+1, n)
		c.add(file, t)
		weights[t.Name] = file
	}
	index, _ := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": 1}, "weight_map": weights})
	c.files[source.IndexName] = string(index)
	return c
}

// unlist removes a tensor from the index.
func (c *checkpoint) unlist(t *testing.T, name string) {
	t.Helper()
	var index map[string]map[string]any
	if err := json.Unmarshal([]byte(c.files[source.IndexName]), &index); err != nil {
		t.Fatal(err)
	}
	delete(index["weight_map"], name)
	out, _ := json.Marshal(index)
	c.files[source.IndexName] = string(out)
}

// write writes the folder, without shards that have no tensors.
func (c *checkpoint) write(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range c.files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, []byte(text))
	}
	for name, list := range c.tensors {
		var b bytes.Buffer
		var ts []safetensors.Tensor
		for _, tn := range list {
			ts = append(ts, tn.Tensor)
		}
		err := safetensors.Write(&b, ts, map[string]string{"format": "pt"},
			func(i int) (io.Reader, error) { return bytes.NewReader(list[i].data), nil })
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), b.Bytes())
	}
	return dir
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func from(dir string, more ...modelfile.Command) *modelfile.File {
	return &modelfile.File{Name: "Modelfile", Commands: append([]modelfile.Command{{Name: modelfile.From, Value: dir}},
		more...)}
}

func modelName(t *testing.T, s string) manifest.Name {
	t.Helper()
	n, err := manifest.ParseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func mustCreate(t *testing.T, s *store.Store, name string, f *modelfile.File, opts Options) Result {
	t.Helper()
	r, err := Create(t.Context(), s, modelName(t, name), f, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// contents lists the store's models, blobs and partial files.
func contents(t *testing.T, s *store.Store) []string {
	t.Helper()
	found := map[string]bool{}
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		found["model "+m.Name.String()] = true
	}
	for _, dir := range []string{"blobs", "ingest", "holders"} {
		err := filepath.WalkDir(filepath.Join(s.Root(), dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				found[strings.TrimPrefix(path, s.Root())] = true
			}
			if os.IsNotExist(err) {
				return nil
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// finished lists the store's models and blobs, without the state for resuming.
func finished(t *testing.T, s *store.Store) []string {
	t.Helper()
	return slices.DeleteFunc(contents(t, s), func(p string) bool { return strings.Contains(p, "ingest") })
}

// checkTidy verifies that no partial files are left.
func checkTidy(t *testing.T, s *store.Store) {
	t.Helper()
	for _, p := range contents(t, s) {
		if strings.Contains(p, "ingest") || strings.Contains(p, "holders") {
			t.Errorf("left %s", p)
		}
	}
}
