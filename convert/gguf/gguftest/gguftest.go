// Package gguftest writes GGUF files for tests.
//
// Contract: equal arguments give equal files.
package gguftest

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/quantize/ggml"
)

// File is a file under construction.
type File struct {
	Metadata []gguf.Pair
	Tensors  []gguf.Tensor
	Data     map[string][]byte
}

// Sizes of the models that Llama makes.
const (
	Hidden, Heads, KVHeads, Wide, Vocab = 256, 4, 2, 512, 32
)

// Llama makes a model of one layer, without a tokenizer. Its matrices are of a type and have random bits, with finite
// scales.
func Llama(kind ggml.Type) *File {
	f := &File{Data: map[string][]byte{}, Metadata: []gguf.Pair{
		{Key: "general.architecture", Value: gguf.Text("llama")},
		{Key: "llama.block_count", Value: gguf.Number(1)},
		{Key: "llama.context_length", Value: gguf.Number(128)},
		{Key: "llama.embedding_length", Value: gguf.Number(Hidden)},
		{Key: "llama.feed_forward_length", Value: gguf.Number(Wide)},
		{Key: "llama.attention.head_count", Value: gguf.Number(Heads)},
		{Key: "llama.attention.head_count_kv", Value: gguf.Number(KVHeads)},
		{Key: "llama.attention.layer_norm_rms_epsilon", Value: gguf.Real(1e-5)},
		{Key: "llama.rope.freq_base", Value: gguf.Real(1e4)},
	}}
	const kv = Hidden / Heads * KVHeads
	f.Add("token_embd.weight", kind, Vocab, Hidden)
	f.Add("output_norm.weight", ggml.F32, Hidden)
	for _, t := range []struct {
		name  string
		shape []int64
	}{
		{"attn_q", []int64{Hidden, Hidden}}, {"attn_k", []int64{kv, Hidden}}, {"attn_v", []int64{kv, Hidden}},
		{"attn_output", []int64{Hidden, Hidden}}, {"ffn_gate", []int64{Wide, Hidden}}, {"ffn_up", []int64{Wide, Hidden}},
		{"ffn_down", []int64{Hidden, Wide}},
	} {
		f.Add("blk.0."+t.name+".weight", kind, t.shape...)
	}
	f.Add("blk.0.attn_norm.weight", ggml.F32, Hidden)
	f.Add("blk.0.ffn_norm.weight", ggml.F32, Hidden)
	return f
}

// Add adds a tensor of random bits, of a type that can be decoded. Blocks that decode to numbers beyond 1000, or to
// none, are drawn again.
func (f *File) Add(name string, kind ggml.Type, shape ...int64) {
	rng := rand.New(rand.NewPCG(uint64(kind), uint64(len(f.Tensors))))
	block, size := kind.Block()
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	var data []byte
	values, raw := make([]float32, block), make([]byte, size)
	for range n / int64(block) {
		for !draw(rng, kind, values, raw) {
		}
		data = append(data, raw...)
	}
	f.Tensors = append(f.Tensors, gguf.Tensor{Name: name, Type: kind, Shape: shape})
	f.Data[name] = data
}

func draw(rng *rand.Rand, kind ggml.Type, values []float32, raw []byte) bool {
	for i := range raw {
		raw[i] = byte(rng.Uint32())
	}
	switch kind {
	case ggml.F32:
		binary.LittleEndian.PutUint32(raw, math.Float32bits(rng.Float32()))
		return true
	case ggml.F16, ggml.BF16:
		raw[1] &= 0xbf // below 2 in either type
		return true
	}
	if kind.Decode(values, raw) != nil {
		return false
	}
	for _, x := range values {
		if !(x >= -1000 && x <= 1000) {
			return false
		}
	}
	return true
}

// Set sets a metadata value.
func (f *File) Set(key string, v gguf.Value) {
	for i := range f.Metadata {
		if f.Metadata[i].Key == key {
			f.Metadata[i].Value = v
			return
		}
	}
	f.Metadata = append(f.Metadata, gguf.Pair{Key: key, Value: v})
}

// Bytes encodes the file.
func (f *File) Bytes(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	err := gguf.Write(&b, f.Metadata, f.Tensors, func(i int) (io.Reader, error) {
		return bytes.NewReader(f.Data[f.Tensors[i].Name]), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Write writes the file to a new folder and returns its path.
func (f *File) Write(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, f.Bytes(t), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
