package types

import (
	"fmt"
	"strconv"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// QwenVision is the vision tower of a [Qwen35]: patches, learned positions, blocks with full attention over an image,
// and a merger that maps Merge x Merge patches to one vector of the text model's width. Norms are LayerNorms with eps
// 1e-6.
type QwenVision struct {
	Depth        int // number of blocks
	Hidden       int
	Intermediate int
	Heads        int
	Channels     int // of an image
	Patch        int // side length of a patch in pixels
	Temporal     int // frames per patch; a still image is repeated
	Merge        int
	Out          int // hidden size of the text model
	Positions    int // rows of the learned position table; the tensor's actual size takes precedence
	Theta        float64
}

const maxDepth = 1 << 10

// parseQwenVision reads vision_config. It returns nil if there is no tower.
func parseQwenVision(top config.Object, hidden int) *QwenVision {
	if !top.Has("vision_config") {
		return nil
	}
	o, _ := top.Object("vision_config")
	v := &QwenVision{
		Depth:        o.Integer("depth", o.Integer("num_hidden_layers", 27, 0, maxDepth), 0, maxDepth),
		Hidden:       o.Integer("hidden_size", 1152, 1, config.MaxWidth),
		Intermediate: o.Integer("intermediate_size", 4304, 1, config.MaxWidth),
		Heads:        o.Integer("num_heads", o.Integer("num_attention_heads", 16, 1, config.MaxHeads), 1, config.MaxHeads),
		Channels:     o.Integer("in_channels", 3, 3, 3),
		Patch:        readSide(o, "patch_size", 16),
		Temporal:     readSide(o, "temporal_patch_size", 2),
		Merge:        o.Integer("spatial_merge_size", 2, 1, 64),
		Out:          o.Integer("out_hidden_size", 3584, 1, config.MaxWidth),
		Positions:    o.Integer("num_position_embeddings", 2304, 1, config.MaxVocab),
	}
	v.Theta = o.Theta("rope_theta", 10000)
	if in, ok := o.Object("rope_parameters"); ok {
		v.Theta = in.Theta("rope_theta", v.Theta)
	}
	o.Activation("hidden_act", config.GELU...)
	if v.Hidden%v.Heads != 0 || v.Hidden/v.Heads%4 != 0 {
		o.Fail("hidden_size", fmt.Sprintf("give num_heads = %d heads of a multiple of 4 channels", v.Heads))
	}
	if len(o.Integers("deepstack_visual_indexes", maxDepth, 0, maxDepth)) > 0 {
		o.Fail("deepstack_visual_indexes", "be empty: deepstack is not supported")
	}
	if v.Depth == 0 {
		return nil
	}
	if v.Out != hidden {
		o.Fail("out_hidden_size", fmt.Sprintf("be the text model's hidden_size = %d", hidden))
	}
	return v
}

// readSide reads a size that is published as one number or as one per axis.
func readSide(o config.Object, key string, def int) int {
	const limit = 1 << 10
	if o.Has(key) {
		if _, one := config.AsInteger(o.Keys[key]); !one {
			list := o.Integers(key, 3, 1, limit)
			for _, n := range list {
				if n != list[0] {
					o.Fail(key, "be the same on all axes")
				}
			}
			if len(list) == 0 {
				o.Fail(key, "be an integer")
				return def
			}
			return list[0]
		}
	}
	return o.Integer(key, def, 1, limit)
}

// Pictures returns nil for models without a tower.
func (m *Qwen35) Pictures() *config.Pictures {
	v := m.Vision
	if v == nil {
		return nil
	}
	return &config.Pictures{
		Patch: v.Patch, Temporal: v.Temporal, Merge: v.Merge,
		Image: m.ImageToken, Video: m.VideoToken, Start: m.VisionStart, End: m.VisionEnd,
	}
}

const visionPrefix = "model.visual."

// visionPart returns the part of the tower's tensors, with its published prefixes.
func visionPart() table.Part {
	p := table.Part{Name: "vision", Prefix: visionPrefix, Accept: []string{"vision_tower.", "visual."}}
	for _, text := range config.TextPrefixes {
		for _, tower := range []string{"vision_tower.", "model.visual.", "visual."} {
			if name := text + tower; name != visionPrefix && text != "" {
				p.Accept = append(p.Accept, name)
			}
		}
	}
	return p
}

// table adds the tower's tensors. Rank 0 encodes all pictures and broadcasts their vectors.
func (v *QwenVision) table(t *table.Table) {
	hidden, merged := int64(v.Hidden), int64(v.Hidden)*int64(v.Merge)*int64(v.Merge)
	c, frames, side := int64(v.Channels), int64(v.Temporal), int64(v.Patch)
	p := visionPrefix
	patch := t.Add(p+"patch_embed.proj.weight", table.OnRankZero, hidden, c, frames, side, side)
	patch.Aliases, patch.Reshape = []string{p + "patch_embed.weight"}, [][]int64{{hidden, c * frames * side * side}}
	bias := t.Add(p+"patch_embed.proj.bias", table.OnRankZero, hidden)
	bias.Aliases, bias.Optional = []string{p + "patch_embed.bias"}, true
	pos := t.Add(p+"pos_embed.weight", table.OnRankZero, int64(v.Positions), hidden)
	pos.Aliases, pos.FreeRows = []string{p + "pos_embed", p + "position_embedding.weight", p + "position_embedding"}, true
	for i := range v.Depth {
		block := p + "blocks." + strconv.Itoa(i) + "."
		towerNorm(t, block+"norm1", hidden)
		packedQKV(t, block, hidden)
		aliased(t, block+"attn.proj", hidden, hidden, block+"attn_out", block+"attn.o_proj")
		towerNorm(t, block+"norm2", hidden)
		aliased(t, block+"mlp.linear_fc1", int64(v.Intermediate), hidden, block+"mlp.fc1")
		aliased(t, block+"mlp.linear_fc2", hidden, int64(v.Intermediate), block+"mlp.fc2")
	}
	towerNorm(t, p+"merger.norm", hidden, p+"merger.ln_q")
	aliased(t, p+"merger.linear_fc1", merged, merged, p+"merger.mlp.0")
	aliased(t, p+"merger.linear_fc2", int64(v.Out), merged, p+"merger.mlp.2")
}

// towerNorm adds the weight and bias of a LayerNorm under all published names: X.weight and X.bias, or X and X_bias.
func towerNorm(t *table.Table, name string, size int64, others ...string) {
	weight, bias := t.Add(name+".weight", table.OnRankZero, size), towerBias(name, size)
	for _, n := range append([]string{name}, others...) {
		if n != name {
			weight.Aliases, bias.Aliases = append(weight.Aliases, n+".weight"), append(bias.Aliases, n+".bias")
		}
		weight.Aliases, bias.Aliases = append(weight.Aliases, n), append(bias.Aliases, n+"_bias")
	}
	t.Specs = append(t.Specs, bias)
}

// towerBias returns the bias of a tower's layer, which is not in the table yet.
func towerBias(name string, size int64) table.Spec {
	return table.Spec{Name: name + ".bias", Shape: []int64{size}, Split: table.OnRankZero}
}

// aliased adds a linear layer with bias that is published under several names.
func aliased(t *table.Table, name string, out, in int64, others ...string) {
	weight, bias := t.Add(name+".weight", table.OnRankZero, out, in), towerBias(name, out)
	for _, n := range others {
		weight.Aliases, bias.Aliases = append(weight.Aliases, n+".weight"), append(bias.Aliases, n+".bias")
	}
	t.Specs = append(t.Specs, bias)
}

// packedQKV adds the fused projection of queries, keys and values.
func packedQKV(t *table.Table, block string, hidden int64) {
	for _, kind := range []struct {
		suffix string
		shape  []int64
	}{{".weight", []int64{hidden, hidden}}, {".bias", []int64{hidden}}} {
		packed := append([]int64{3 * hidden}, kind.shape[1:]...)
		s := t.Add(block+"attn.qkv"+kind.suffix, table.OnRankZero, packed...)
		s.Aliases = []string{block + "attn_qkv" + kind.suffix}
		s.Layout, s.Group = table.Fused, block+"attn"
		for _, names := range [][]string{{"attn.q_proj", "attn.k_proj", "attn.v_proj"}, {"attn_q", "attn_k", "attn_v"}} {
			f := table.Form{Layout: table.Unfused, Make: table.Stack, Count: 1}
			for _, n := range names {
				f.Names, f.Shapes = append(f.Names, block+n+kind.suffix), append(f.Shapes, kind.shape)
			}
			s.Forms = append(s.Forms, f)
		}
	}
}
