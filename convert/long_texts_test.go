package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/gguftest"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize/ggml"
	"github.com/ingotml/ingot/safetensors"
)

// long is text that no message may quote as a whole.
var long = strings.Repeat("long text ", limits.Message/4)

// checkShort checks that an error and the warnings of a plan are short.
func checkShort(t *testing.T, what string, file *modelfile.File) {
	t.Helper()
	p, err := DryRun(context.Background(), nil, file, Options{})
	if err != nil && len(err.Error()) > limits.Message {
		t.Errorf("%s: an error of %d bytes: %.300v", what, len(err.Error()), err)
	}
	if p == nil {
		return
	}
	for _, text := range slices.Concat(p.Warnings, p.Assumed) {
		if len(text) > limits.Message {
			t.Errorf("%s: a warning of %d bytes: %.300s", what, len(text), text)
		}
	}
}

// TestLongTexts checks that no message has all of a long text, wherever a checkpoint has it: as a value of any key, as
// a key, as a number.
func TestLongTexts(t *testing.T) {
	files := map[string]string{
		"generation_config.json": `{"eos_token_id": 2, "suppress_tokens": [1], "temperature": 1, "top_k": 4, "top_p": 1,
			"repetition_penalty": 1}`,
		"modules.json":       `[{"idx": 0, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`,
		"chat_template.json": `{"chat_template": "x"}`,
		"config.json": strings.Replace(tinyConfig, "{", `{"rope_scaling": {"rope_type": "linear", "factor": 2},`,
			1),
		"processor_config.json": `{"image_processor": {"size": 1}}`,
		"added_tokens.json":     `{"<x>": 1}`, "special_tokens_map.json": `{"bos_token": {"content": "x"}}`,
		source.IndexName: `{"metadata": {"total_size": 1}, "weight_map": {"model.norm.weight": "model.safetensors"}}`,
	}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		data, err := os.ReadFile(filepath.Join("..", "testdata", "models", "demo", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(data)
	}
	ck := tiny(t, tinyConfig, 1)
	dir := ck.write(t, t.TempDir())
	for name, text := range files {
		if name != source.IndexName {
			writeFile(t, filepath.Join(dir, name), []byte(text))
		}
	}
	for name, text := range files {
		number, _ := json.Marshal(json.Number("1" + strings.Repeat("0", limits.Message)))
		count := 0
		for what, text := range lengthened(t, []byte(text), []byte(number)) {
			if count++; count%runtest.Pick(3, 1) != 0 {
				continue // one in three, in any order: all take seconds
			}
			writeFile(t, filepath.Join(dir, name), text)
			checkShort(t, name+" "+what, from(dir))
		}
		writeFile(t, filepath.Join(dir, name), []byte(text))
		if name == source.IndexName {
			_ = os.Remove(filepath.Join(dir, name))
		}
	}
	for what, change := range map[string]func(*tensor){
		"name": func(x *tensor) { x.Name = long }, "type": func(x *tensor) { x.DType = safetensors.DType(long) },
		"shape": func(x *tensor) { x.Shape = slices.Repeat([]int64{1}, limits.Message) },
	} {
		text := header(t, ck.tensors["model.safetensors"][0], change)
		writeFile(t, filepath.Join(dir, "model.safetensors"), text)
		checkShort(t, "a tensor's "+what, from(dir))
	}
}

// header returns a file of one tensor.
func header(t *testing.T, x tensor, change func(*tensor)) []byte {
	t.Helper()
	change(&x)
	entry, err := json.Marshal(map[string]any{x.Name: map[string]any{"dtype": x.DType, "shape": x.Shape,
		"data_offsets": []int{0, len(x.data)}}})
	if err != nil {
		t.Fatal(err)
	}
	size := []byte{byte(len(entry)), byte(len(entry) >> 8), byte(len(entry) >> 16), 0, 0, 0, 0, 0}
	return slices.Concat(size, entry, x.data)
}

// lengthened returns variants of a JSON text, each with a long text or number in another place.
func lengthened(t *testing.T, text, number []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	value, err := json.Marshal(long)
	if err != nil {
		t.Fatal(err)
	}
	key := append(slices.Concat([]byte("{"), value), ":1}"...)
	var walk func(path string, text []byte, put func([]byte) []byte)
	walk = func(path string, text []byte, put func([]byte) []byte) {
		for kind, v := range map[string][]byte{
			"a long text": value, "a long number": number, "a long key": key, "a list": slices.Concat([]byte("["), value,
				[]byte("]")),
		} {
			out[path+": "+kind] = put(v)
		}
		var object map[string]json.RawMessage
		var list []json.RawMessage
		switch {
		case json.Unmarshal(text, &object) == nil:
			for _, k := range first(slices.Sorted(maps.Keys(object))) {
				walk(path+"."+k, object[k], func(v []byte) []byte {
					changed := maps.Clone(object)
					changed[k] = v
					return put(jsonOf(t, changed))
				})
			}
		case json.Unmarshal(text, &list) == nil:
			for i := range first(list) {
				walk(fmt.Sprintf("%s[%d]", path, i), list[i], func(v []byte) []byte {
					changed := slices.Clone(list)
					changed[i] = v
					return put(jsonOf(t, changed))
				})
			}
		}
	}
	walk("", text, func(v []byte) []byte { return v })
	return out
}

// first returns the first elements of a long list, which stand for all.
func first[T any](list []T) []T {
	if len(list) > 20 {
		return list[:1]
	}
	return list
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestLongMetadata is TestLongTexts for the texts of GGUF files.
func TestLongMetadata(t *testing.T) {
	f := gguftest.Llama(ggml.F16)
	for _, p := range []gguf.Pair{
		{Key: "tokenizer.ggml.model", Value: gguf.Text("gpt2")}, {Key: "tokenizer.ggml.pre", Value: gguf.Text("llama-bpe")},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Texts([]string{"a", "b", "ab"})},
		{Key: "tokenizer.ggml.merges", Value: gguf.Texts([]string{"a b"})},
		{Key: "tokenizer.ggml.token_type", Value: gguf.Numbers([]int32{1, 1, 1})},
		{Key: "tokenizer.chat_template", Value: gguf.Text("x")}, {Key: "general.license", Value: gguf.Text("x")},
		{Key: "llama.rope.scaling.type", Value: gguf.Text("none")}, {Key: "general.type", Value: gguf.Text("model")},
	} {
		f.Set(p.Key, p.Value)
	}
	for i, p := range f.Metadata {
		for _, v := range []gguf.Value{gguf.Text(long), gguf.Texts([]string{long, long, "ab"}), gguf.Texts([]string{long})} {
			f.Metadata[i].Value = v
			checkShort(t, p.Key, from(f.Write(t, "x.gguf")))
		}
		f.Metadata[i].Value = p.Value
	}
	name := f.Metadata[1].Key
	f.Metadata[1].Key = long
	checkShort(t, "a key", from(f.Write(t, "x.gguf")))
	f.Metadata[1].Key = name
	b := f.Bytes(t)
	path := filepath.Join(t.TempDir(), "x.gguf")
	writeFile(t, path, bytes.Replace(b, []byte("token_embd.weight"), []byte("token_embd.we\x00ght"), 1))
	checkShort(t, "a tensor's name", from(path))
}

// TestLongWords is TestLongTexts for the lines of a Modelfile.
func TestLongWords(t *testing.T) {
	dir := tiny(t, tinyConfig, 1).write(t, t.TempDir())
	for _, lines := range []string{
		"FROM %s", "%s x", "FROM D\n%s x", "FROM D\nPARAMETER %s 1", "FROM D\nPARAMETER temperature %s", "FROM D\nSYSTEM %s",
		"FROM D\nPARAMETER stop %s", "FROM D\nDRAFT %s", "FROM D\nADAPTER %s", "FROM D\nTEMPLATE {{ %s",
		"FROM D\nREQUIRES %s",
		"FROM D\nPARSER %s", "FROM D\nRENDERER %s", "FROM D\nMESSAGE %s x", "FROM D\nLICENSE \"\"\"%s", "FROM hf.co/%s",
		"FROM https://%s",
	} {
		text := strings.ReplaceAll(fmt.Sprintf(lines, strings.ReplaceAll(long, " ", "_")), "D\n", dir+"\n")
		file, err := modelfile.Parse("Modelfile", []byte(text))
		if err != nil {
			if len(err.Error()) > limits.Message {
				t.Errorf("%s: an error of %d bytes: %.300v", lines, len(err.Error()), err)
			}
			continue
		}
		checkShort(t, lines, file)
	}
}
