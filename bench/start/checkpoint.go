package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/ingotml/ingot/safetensors"
	"github.com/ingotml/ingot/tokenizer"
)

// hidden and the others are the sizes of a tiny Llama, whose layers take no time.
const hidden, inner, layers, heads, head = 64, 128, 2, 4, 16

// writeCheckpoint writes a tiny Llama of random bfloat16 weights with the tokenizer of a folder, and returns the size
// of its vocabulary.
func writeCheckpoint(dir, folder string) (int, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	var text []byte
	for _, name := range []string{"tokenizer_config.json", "tokenizer.json"} {
		var err error
		if text, err = os.ReadFile(filepath.Join(folder, name)); err != nil {
			return 0, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return 0, err
		}
	}
	t, err := tokenizer.Load(text, nil)
	if err != nil {
		return 0, err
	}
	config, err := json.Marshal(map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "vocab_size": t.Size(),
		"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
		"num_key_value_heads": heads, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
		"tie_word_embeddings": true, "torch_dtype": "bfloat16", "hidden_act": "silu",
	})
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644); err != nil {
		return 0, err
	}
	return t.Size(), writeWeights(filepath.Join(dir, "model.safetensors"), int64(t.Size()))
}

func writeWeights(path string, vocabulary int64) error {
	var tensors []safetensors.Tensor
	add := func(name string, shape ...int64) {
		tensors = append(tensors, safetensors.Tensor{Name: "model." + name + ".weight", DType: "BF16", Shape: shape})
	}
	add("embed_tokens", vocabulary, hidden)
	for i := range layers {
		p := "layers." + string(rune('0'+i)) + "."
		add(p+"input_layernorm", hidden)
		for _, name := range []string{"q_proj", "k_proj", "v_proj"} {
			add(p+"self_attn."+name, heads*head, hidden)
		}
		add(p+"self_attn.o_proj", hidden, heads*head)
		add(p+"post_attention_layernorm", hidden)
		add(p+"mlp.gate_proj", inner, hidden)
		add(p+"mlp.up_proj", inner, hidden)
		add(p+"mlp.down_proj", hidden, inner)
	}
	add("norm", hidden)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(29, 0))
	err = safetensors.Write(f, tensors, nil, func(i int) (io.Reader, error) {
		data := make([]byte, 2*tensors[i].NumElements())
		for at := 0; at < len(data); at += 2 {
			data[at] = byte(random.Uint32())
			data[at+1] = 0x3c | byte(random.Uint32()&1)<<7 // about 0.01 or -0.01
		}
		return bytes.NewReader(data), nil
	})
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
