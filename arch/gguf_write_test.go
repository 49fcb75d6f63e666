package arch_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/gguf"
)

// A file says everything that an import requires, of the checkpoints in testdata and of their plain variants, which
// llama.cpp runs.
func TestGGUFHeaderIsComplete(t *testing.T) {
	written := map[string]bool{}
	eachConfig(t, func(file string, variant int, config []byte) {
		m, err := arch.Detect(config)
		if err != nil && variant > 0 {
			return // the model has no plain variant
		}
		if err != nil {
			t.Fatal(err)
		}
		g, h, err := arch.GGUFOf(m)
		if errors.Is(err, gguf.ErrMetadata) {
			return
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		written[m.Facts().ModelType] = true
		for _, k := range g.Keys {
			key := g.Architecture + "." + k.Key
			if !k.Optional && !slices.ContainsFunc(h.Metadata, func(p gguf.Pair) bool { return p.Key == key }) {
				t.Errorf("%s: %s is not written: has %s a field %s?", file, key, m.Facts().ModelType, k.Field)
			}
		}
	})
	if len(written) < 45 {
		t.Errorf("%d types can be written, want at least 45", len(written))
	}
}

// eachConfig calls do for the config.json of each checkpoint in testdata, and for its plain variant.
func eachConfig(t *testing.T, do func(file string, variant int, config []byte)) {
	t.Helper()
	files, err := filepath.Glob("../testdata/models/*/config.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no checkpoints: %v", err)
	}
	for _, file := range files {
		config, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		do(file, 0, config)
		do(file, 1, plain(t, config))
	}
}

// plain returns a configuration without scaled rope, with as many key heads as query heads, and with the usual windows.
func plain(t *testing.T, config []byte) []byte {
	t.Helper()
	var c map[string]any
	if err := json.Unmarshal(config, &c); err != nil {
		return config // with a number that JSON does not have
	}
	if heads, ok := c["num_attention_heads"]; ok {
		c["num_key_value_heads"] = heads
	}
	if _, ok := c["rope_scaling"]; ok {
		c["rope_scaling"] = nil
	}
	switch c["model_type"] {
	case "exaone4":
		c["sliding_window"] = nil
	case "deepseek_v2":
		c["q_lora_rank"] = 32
	case "afmoe":
		c["layer_types"], c["global_attn_every_n_layers"] = nil, 4
	}
	out, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
