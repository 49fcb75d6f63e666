package batch

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/safetensors"
)

// headless writes a model without its head, and with the names of the class without.
func headless(t *testing.T, name, class string) string {
	t.Helper()
	dir := t.TempDir()
	config, err := os.ReadFile(filepath.Join(modeltest.Dir(name), "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	config = bytes.Replace(config, []byte(class+"ForCausalLM"), []byte(class+"Model"), 1)
	f, err := safetensors.Open(filepath.Join(modeltest.Dir(name), "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list := slices.DeleteFunc(slices.Clone(f.Header().Tensors), func(x safetensors.Tensor) bool {
		return strings.HasPrefix(x.Name, "lm_head.")
	})
	named := slices.Clone(list)
	for i := range named {
		named[i].Name = strings.TrimPrefix(named[i].Name, "model.")
	}
	var out bytes.Buffer
	err = safetensors.Write(&out, named, nil, func(i int) (io.Reader, error) { return f.Reader(list[i]), nil })
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "model.safetensors"), out.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A model without its head has the vectors of the same model with it, and generates nothing.
func TestHeadless(t *testing.T) {
	for name, class := range map[string]string{
		"llama-default": "Llama", "llama-mistral": "Mistral", "qwen3-default": "Qwen3", "gemma3-text-saved": "Gemma3",
		"phi-saved": "Phi",
	} {
		t.Run(name, func(t *testing.T) {
			inputs := runtime.EmbedRequest{Inputs: [][]int32{{5, 9, 33, 60}, {7}}}
			want := embedInputs(t, loadModel(t, name), inputs)
			store, entry := converttest.PackFrom(t, headless(t, name, class), name)
			if can := entry.Image.Config.Capabilities; !slices.Equal(can, []string{"embedding"}) {
				t.Errorf("capabilities %v", can)
			}
			l, err := Open(t.Context(), mlxtest.Open(t), store, entry, runtime.Options{Float32: true})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			for i, got := range embedInputs(t, l, inputs) {
				if c := cosine(got, want[i]); c < 1-1e-6 {
					t.Errorf("input %d: the cosine is %g", i, c)
				}
			}
			for _, err := range l.Generate(t.Context(), runtime.Request{Prompt: []int32{5, 9}, MaxTokens: 2}) {
				if !errors.Is(err, runtime.ErrNoHead) {
					t.Errorf("generates with %v", err)
				}
			}
		})
	}
}
