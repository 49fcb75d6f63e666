package verify

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/runtimetest"
	"github.com/ingotml/ingot/safetensors"
	"github.com/opencontainers/go-digest"
)

// An image as Ollama's create writes it runs: with Ollama's manifest, and blobs of MLX's own writer, which writes the
// parts of a tensor in any order after a header of any length.
func TestOllamaImage(t *testing.T) {
	kind, _, err := quantize.ParseType("int4")
	if err != nil {
		t.Fatal(err)
	}
	st, entry := converttest.PackAs(t, modeltest.Dir("llama-default"), "ours", recipe.Precision{Type: kind})
	put := func(b []byte) digest.Digest {
		d, _, err := st.PutBytes(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	config := []byte(`{"model_format":"safetensors","file_type":"int4","requires":"0.19.0",` +
		`"capabilities":["completion"]}` + "\n")
	layers, crooked := []string{}, 0
	for _, l := range entry.Image.Layers {
		b, err := st.ReadBlob(l.Digest, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		mediaType := "json"
		if l.Kind == manifest.KindTensor {
			var offset int
			mediaType = "tensor"
			if b, offset = rewritten(t, b); offset%4 != 0 {
				crooked++
			}
		} else if path.Ext(l.Name) != ".json" || strings.HasSuffix(l.Name, "index.json") || l.Name == "ingot.json" {
			continue
		}
		layers = append(layers,
			fmt.Sprintf(`{"mediaType":"application/vnd.ollama.image.%s","digest":"%s","size":%d,"name":%q}`, mediaType, put(b),
				len(b), l.Name))
	}
	if crooked == 0 {
		t.Fatal("all headers happen to end at a multiple of four bytes: this test shows nothing")
	}
	text := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",`+
		`"config":{"mediaType":`+
		`"application/vnd.docker.container.image.v1+json","digest":"%s","size":%d},"layers":[%s]}`+"\n", put(config),
		len(config), strings.Join(layers, ","))
	name, err := manifest.ParseName("theirs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.PutRaw(t.Context(), name, "", []byte(text), store.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	theirs, err := st.Resolve(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Image(t.Context(), st, theirs); err != nil {
		t.Fatal(err)
	}
	thread := mlxtest.Open(t)
	var outputs [][]int32
	for _, e := range []*store.Entry{entry, theirs} {
		l, err := batch.Open(t.Context(), thread, st, e, runtime.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ids, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: []int32{1, 17, 42, 99}, MaxTokens: 16,
			IgnoreEOS: true})
		l.Close()
		if err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, ids)
	}
	if !slices.Equal(outputs[0], outputs[1]) {
		t.Errorf("our image generates %v, Ollama's %v", outputs[0], outputs[1])
	}
}

// rewritten returns a safetensors file with its tensors in reverse order and without padding, and the offset of its
// data.
func rewritten(t *testing.T, file []byte) ([]byte, int) {
	t.Helper()
	h, err := safetensors.ReadHeader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	header := map[string]any{}
	if h.Metadata != nil {
		header["__metadata__"] = h.Metadata
	}
	slices.Reverse(h.Tensors)
	for _, p := range h.Tensors {
		begin := len(data)
		data = append(data, file[h.DataOffset+p.Begin:h.DataOffset+p.End]...)
		header[p.Name] = map[string]any{"dtype": p.DType, "shape": p.Shape, "data_offsets": []int{begin, len(data)}}
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	out = append(out, text...)
	return append(out, data...), 8 + len(text)
}
