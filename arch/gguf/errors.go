package gguf

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/ingotml/ingot/arch/config"
)

// others are the metadata keys of keys of config.json that mappings make in code; * is the architecture.
var others = map[string]string{
	"head_dim": "*.attention.key_length", "num_key_value_heads": "*.attention.head_count_kv",
	"intermediate_size": "*.feed_forward_length", "rope_theta": "*.rope.freq_base",
	"sliding_window":      "*.attention.sliding_window",
	"rope_scaling.factor": "*.rope.scaling.factor", "rope_scaling.rope_type": "*.rope.scaling.type",
	"rope_scaling.original_max_position_embeddings": "*.rope.scaling.original_context_length",
	"partial_rotary_factor":                         "*.rope.dimension_count",
	"num_local_experts":                             "*.expert_count", "num_experts": "*.expert_count",
	"n_routed_experts": "*.expert_count", "vocab_size": "*.vocab_size",
	"rope_parameters.full_attention.rope_theta":    "*.rope.freq_base",
	"rope_parameters.sliding_attention.rope_theta": "*.rope.freq_base_swa",
	"sliding_window_pattern":                       "*.attention.sliding_window_pattern",
	"bos_token_id":                                 "tokenizer.ggml.bos_token_id",
	"eos_token_id":                                 "tokenizer.ggml.eos_token_id",
}

// configKey matches what may be a key of config.json in a message.
var configKey = regexp.MustCompile(`[a-z][a-z_0-9]*(\.[a-z_0-9]+)*`)

// Explain returns an error of a config.json that [Map.MakeConfig] made with the keys of the file: users have no
// config.json.
func (g Map) Explain(err error) error {
	bad, ok := err.(config.Error)
	if !ok {
		return err
	}
	text := configKey.ReplaceAllStringFunc(string(bad), func(key string) string {
		if own, ok := g.own(key); ok {
			return own
		}
		return key
	})
	return fmt.Errorf("%w: %s; convert the model again", ErrMetadata, text)
}

// own returns the metadata key of a key of config.json.
func (g Map) own(key string) (string, bool) {
	for _, k := range g.Keys {
		if k.To == key {
			return g.Architecture + "." + k.Key, true
		}
	}
	own, ok := others[key]
	return strings.Replace(own, "*", g.Architecture, 1), ok
}
