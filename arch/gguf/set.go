package gguf

import (
	"encoding/json"
	"fmt"

	"github.com/ingotml/ingot/arch/config"
)

// SetSparse sets which layers have experts: those with a router.
func SetSparse(c map[string]any, f File) error {
	layers, err := Layers(c)
	kinds := make([]string, layers)
	for i := range kinds {
		kinds[i] = "dense"
		if _, ok := f.Shape(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i)); ok {
			kinds[i] = "sparse"
		}
	}
	c["mlp_layer_types"] = kinds
	return err
}

// SetBiases sets which layers have biases.
func SetBiases(c map[string]any, f File) error {
	_, c["attention_bias"] = f.Shape("blk.0.attn_q.bias")
	_, c["mlp_bias"] = f.Shape("blk.0.ffn_up.bias")
	return nil
}

// SetSliding sets which layers slide, if a file says so: a list of the layers, or one of how many is a full one.
func SetSliding(c map[string]any, architecture string, f File) {
	v, ok := f.Value(architecture + ".attention.sliding_window_pattern")
	if !ok {
		return
	}
	list, ok := v.([]any)
	if !ok {
		c["sliding_window_pattern"] = v
		return
	}
	kinds := make([]string, len(list))
	for i, sliding := range list {
		if kinds[i] = config.FullAttention; sliding == true {
			kinds[i] = config.SlidingAttention
		}
	}
	c["layer_types"] = kinds
}

func Number(c map[string]any, key string) (int64, error) {
	n, _ := c[key].(json.Number)
	return n.Int64()
}

// SetFull reads which layers are attention, by their tensors, and the number of their key heads. In a file, the other
// layers have 0 of them.
func SetFull(c map[string]any, f File) ([]bool, error) {
	layers, err := Layers(c)
	full := make([]bool, layers)
	for i := range full {
		_, full[i] = f.Shape(fmt.Sprintf("blk.%d.attn_q.weight", i))
	}
	if list, ok := c["num_key_value_heads"].([]any); ok {
		c["num_key_value_heads"] = c["num_attention_heads"]
		for i, heads := range list {
			if i < layers && full[i] {
				c["num_key_value_heads"] = heads
			}
		}
	}
	return full, err
}

// AnyLayer reports whether any layer of a file has a tensor.
func AnyLayer(c map[string]any, f File, name string) bool {
	layers, _ := Layers(c)
	for i := range layers {
		if _, ok := f.Shape(fmt.Sprintf("blk.%d.%s", i, name)); ok {
			return true
		}
	}
	return false
}

// KVHeads are the key heads of layers of which some are attention.
func KVHeads(heads int, full []bool) Pair {
	list := make([]int, len(full))
	for i := range list {
		if full[i] {
			list[i] = heads
		}
	}
	return Pair{"attention.head_count_kv", list}
}

// LayerHas reports whether a layer has a tensor.
func LayerHas(f File, layer int, name string) bool {
	_, ok := f.Shape(fmt.Sprintf("blk.%d.%s", layer, name))
	return ok
}

// SetPartial sets the part of a head that is rotated.
func SetPartial(c map[string]any, architecture string, f File) error {
	v, ok := f.Value(architecture + ".rope.dimension_count")
	if !ok {
		return nil
	}
	n, _ := v.(json.Number)
	rotated, err := n.Int64()
	dim, errDim := Number(c, "head_dim")
	if c["head_dim"] == nil {
		hidden, errHidden := Number(c, "hidden_size")
		heads, errHeads := Number(c, "num_attention_heads")
		if errHidden == nil && errHeads == nil && heads > 0 {
			dim, errDim = hidden/heads, nil
		}
	}
	if err != nil || errDim != nil || dim < 1 {
		return fmt.Errorf("%w: %s.rope.dimension_count = %v: want a part of a head", ErrMetadata, architecture, Shown(v))
	}
	c["partial_rotary_factor"] = float64(rotated) / float64(dim)
	return nil
}

// WithBias adds a key that says whether layers have biases.
func WithBias(g Map, key string) Map {
	before := g.Adjust
	g.Adjust = func(c map[string]any, f File) error {
		_, c[key] = f.Shape("blk.0.attn_q.bias")
		return before(c, f)
	}
	return g
}

// SetDense lists the layers without a router.
func SetDense(c map[string]any, f File) error {
	layers, err := Layers(c)
	if err != nil {
		return err
	}
	dense := []int{}
	for i := range layers {
		if _, ok := f.Shape(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i)); !ok {
			dense = append(dense, i)
		}
	}
	c["mlp_only_layers"] = dense
	return nil
}

// Layers returns the number of layers.
func Layers(c map[string]any) (int, error) {
	n, _ := c["num_hidden_layers"].(json.Number)
	layers, err := n.Int64()
	if err != nil || layers < 1 || layers > config.MaxLayers {
		return 0, fmt.Errorf("%w: block_count = %v: want a number from 1 to %d", ErrMetadata, c["num_hidden_layers"],
			config.MaxLayers)
	}
	return int(layers), nil
}

// DropNext leaves the layers that predict further tokens out of the number of layers.
func DropNext(c map[string]any, architecture string, f File) error {
	v, ok := f.Value(architecture + ".nextn_predict_layers")
	if !ok {
		return nil
	}
	n, _ := v.(json.Number)
	next, err := n.Int64()
	layers, errLayers := Number(c, "num_hidden_layers")
	if err != nil || errLayers != nil || next < 0 || next >= layers {
		return fmt.Errorf("%w: %s.nextn_predict_layers = %v of %v layers", ErrMetadata, architecture, Shown(v),
			Shown(c["num_hidden_layers"]))
	}
	c["num_hidden_layers"] = json.Number(fmt.Sprint(layers - next))
	c["mtp_num_hidden_layers"] = next
	return nil
}
