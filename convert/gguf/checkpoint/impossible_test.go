package checkpoint_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/checkpoint"
	"github.com/ingotml/ingot/convert/gguf/gguftest"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/quantize/ggml"
)

// bits returns a value of 8 bytes as a file has it.
func bits(t *testing.T, kind gguf.Kind, n uint64) gguf.Value {
	t.Helper()
	b := append([]byte("GGUF"), 3, 0, 0, 0)
	for _, n := range []uint64{0, 1, 1} { // tensors, keys, and the length of a key
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = binary.LittleEndian.AppendUint32(append(b, 'k'), uint32(kind))
	b = binary.LittleEndian.AppendUint64(b, n)
	m, err := gguf.ReadMetadata(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := m.Lookup("k")
	return v
}

// TestImpossibleValues checks that a value that a key cannot have is an error that names the key and not a missing
// value, whoever reads it, and that the error is short.
func TestImpossibleValues(t *testing.T) {
	nan := math.Float64bits(math.NaN())
	values := map[string]gguf.Value{
		"NaN": gguf.Real(float32(math.NaN())), "infinite": gguf.Real(float32(math.Inf(1))),
		"NaN of 64 bits": bits(t, gguf.Float64, nan), "1e300": bits(t, gguf.Float64, math.Float64bits(1e300)),
		"2^63": bits(t, gguf.Uint64, 1<<63), "2^64-1": bits(t, gguf.Uint64, math.MaxUint64),
		"-1": bits(t, gguf.Int64, math.MaxUint64), "text": gguf.Text(strings.Repeat("x", 1<<16)), "no list": gguf.Texts(nil),
		"a list": gguf.Texts([]string{"a", strings.Repeat("x", 1<<16)}), "a long list": gguf.Texts(make([]string, 1<<16+1)),
	}
	f := gguftest.Llama(ggml.F16)
	for _, p := range vocabularyPairs() {
		f.Set(p.Key, p.Value)
	}
	usual := slices.Clone(f.Metadata)
	for _, key := range []string{
		"llama.rope.freq_base", "llama.attention.key_length", "llama.block_count", "llama.attention.head_count_kv",
		"llama.attention.layer_norm_rms_epsilon", "llama.rope.scale_linear", "llama.expert_count", "llama.rope.scaling.type",
		"general.sampling.temp", "general.sampling.top_k", "tokenizer.ggml.bos_token_id", "tokenizer.ggml.add_bos_token",
		"tokenizer.ggml.token_type", "tokenizer.ggml.scores", "tokenizer.ggml.merges", "general.alignment", "split.count",
	} {
		for what, v := range values {
			f.Metadata = slices.Clone(usual)
			f.Set(key, v)
			_, err := checkpoint.Open(memory{f.Bytes(t)}, []string{"x.gguf"}, checkpoint.Options{})
			isNumber := strings.Contains(what, "1") && strings.HasPrefix(key, "general.sampling")
			switch {
			case err == nil && (isNumber || key == "tokenizer.ggml.bos_token_id" && what == "-1" || what == "no list"):
			case err == nil:
				t.Errorf("%s = %s is accepted", key, what)
			case !strings.Contains(err.Error(), strings.TrimPrefix(key, "llama.")):
				t.Errorf("%s = %s: the error does not name the key: %v", key, what, err)
			case len(err.Error()) > limits.Message:
				t.Errorf("%s = %s: an error of %d bytes", key, what, len(err.Error()))
			}
		}
	}
}

// vocabularyPairs are the metadata of a tokenizer.
func vocabularyPairs() []gguf.Pair {
	return []gguf.Pair{
		{Key: "tokenizer.ggml.model", Value: gguf.Text("gpt2")}, {Key: "tokenizer.ggml.pre", Value: gguf.Text("llama-bpe")},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Texts([]string{"a", "b", "ab"})},
		{Key: "tokenizer.ggml.merges", Value: gguf.Texts([]string{"a b"})},
	}
}
