package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/gguf"
)

// impossible are values as a file has them that most keys cannot have.
var impossible = map[string]any{
	"NaN": "nan", "infinite": "inf", "negative infinite": "-inf", "2^63": json.Number("9223372036854775808"),
	"2^64-1": json.Number("18446744073709551615"), "1e400": json.Number("1e400"), "negative": json.Number("-1"),
	"a fraction": json.Number("0.3"), "a string": "x", "a bool": true, "an empty list": []any{}, "a list": []any{"x"},
	"nothing": nil, "a list of NaN": []any{"nan", "nan"}, "a list of lists": []any{[]any{json.Number("1")}},
}

// recordedFile remembers which keys were read.
type recordedFile struct {
	ggufMap
	read map[string]bool
}

func (f recordedFile) Value(key string) (any, bool) {
	f.read[key] = true
	return f.ggufMap.Value(key)
}

// TestGGUFImpossible checks of each key of each mapping that is read: a value that is impossible does not count as a
// missing one. It is an error that names the key, or it has an influence.
func TestGGUFImpossible(t *testing.T) {
	// Ids of special tokens beyond the vocabulary are ignored with a note.
	ignored := []string{"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"}
	tried, mappings := 0, map[string]bool{}
	for name, f := range writtenFiles(t) {
		base, g, err := madeConfig(f)
		if err != nil {
			continue // it needs tensors that this test does not have
		}
		read := recordedFile{f, map[string]bool{}}
		if _, _, err := madeConfig(read); err != nil {
			t.Fatal(err)
		}
		for key := range read.read {
			if mappings[g.Architecture+" "+key] {
				continue
			}
			mappings[g.Architecture+" "+key] = true
			without := maps.Clone(f)
			delete(without, key)
			missing, _, errMissing := madeConfig(without)
			for what, v := range impossible {
				if gguf.Want(key, v) == "" && (what == "a fraction" || what == "a bool") {
					continue // it is possible
				}
				with := maps.Clone(f)
				with[key] = v
				got, _, err := madeConfig(with)
				tried++
				switch short := strings.TrimPrefix(key, g.Architecture+"."); {
				case err != nil && !strings.Contains(err.Error(), short):
					t.Errorf("%s: %s = %s: the error does not name the key: %v", name, key, what, err)
				case err != nil && len(err.Error()) > 1000:
					t.Errorf("%s: %s = %s: an error of %d bytes", name, key, what, len(err.Error()))
				case err == nil && errMissing == nil && bytes.Equal(got, missing) && !bytes.Equal(base, missing) &&
					!slices.Contains(ignored, key):
					t.Errorf("%s: %s = %s counts as missing", name, key, what)
				}
			}
		}
	}
	if len(mappings) < 400 {
		t.Errorf("only %d keys, %d values", len(mappings), tried)
	}
}

// writtenFiles returns what files say of the models in testdata, by the model's name.
func writtenFiles(t *testing.T) map[string]ggufMap {
	t.Helper()
	out := map[string]ggufMap{}
	eachConfig(t, func(file string, variant int, config []byte) {
		m, err := arch.Detect(config)
		if err != nil {
			return
		}
		g, h, err := arch.GGUFOf(m)
		if err != nil {
			return
		}
		f := ggufMap{"general.architecture": g.Architecture, "tokenizer.ggml.pre": "llama-bpe"}
		for _, p := range h.Metadata {
			f[p.Key] = asRead(t, p.Value)
		}
		for key, v := range map[string]string{"bos": "1", "eos": "2"} {
			f["tokenizer.ggml."+key+"_token_id"] = json.Number(v)
		}
		out[fmt.Sprintf("%s (%d)", filepath.Base(filepath.Dir(file)), variant)] = f
	})
	return out
}

// asRead returns a value as a file that was read has it.
func asRead(t *testing.T, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func madeConfig(f gguf.File) ([]byte, gguf.Map, error) {
	g, err := arch.DetectGGUF(f)
	if err != nil {
		return nil, g, err
	}
	config, err := g.MakeConfig(f)
	if err == nil {
		_, err = arch.ParseGGUF(g, config)
	}
	if err != nil && !errors.Is(err, gguf.ErrMetadata) && !errors.Is(err, arch.ErrUnknownArchitecture) {
		err = fmt.Errorf("an error of no kind: %w", err)
	}
	return config, g, err
}
