package arch

import (
	"fmt"
	"strconv"
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
func parseQwenVision(top object, hidden int) *QwenVision {
	if !top.has("vision_config") {
		return nil
	}
	o, _ := top.object("vision_config")
	v := &QwenVision{
		Depth:        o.integer("depth", o.integer("num_hidden_layers", 27, 0, maxDepth), 0, maxDepth),
		Hidden:       o.integer("hidden_size", 1152, 1, maxWidth),
		Intermediate: o.integer("intermediate_size", 4304, 1, maxWidth),
		Heads:        o.integer("num_heads", o.integer("num_attention_heads", 16, 1, maxHeads), 1, maxHeads),
		Channels:     o.integer("in_channels", 3, 3, 3),
		Patch:        o.side("patch_size", 16),
		Temporal:     o.side("temporal_patch_size", 2),
		Merge:        o.integer("spatial_merge_size", 2, 1, 64),
		Out:          o.integer("out_hidden_size", 3584, 1, maxWidth),
		Positions:    o.integer("num_position_embeddings", 2304, 1, maxVocab),
	}
	v.Theta = o.theta("rope_theta", 10000)
	if in, ok := o.object("rope_parameters"); ok {
		v.Theta = in.theta("rope_theta", v.Theta)
	}
	o.activation("hidden_act", gelu...)
	if v.Hidden%v.Heads != 0 || v.Hidden/v.Heads%4 != 0 {
		o.fail("hidden_size", fmt.Sprintf("give num_heads = %d heads of a multiple of 4 channels", v.Heads))
	}
	if len(o.integers("deepstack_visual_indexes", maxDepth, 0, maxDepth)) > 0 {
		o.fail("deepstack_visual_indexes", "be empty: deepstack is not supported")
	}
	if v.Depth == 0 {
		return nil
	}
	if v.Out != hidden {
		o.fail("out_hidden_size", fmt.Sprintf("be the text model's hidden_size = %d", hidden))
	}
	return v
}

// side reads a size that is published as one number or as one per axis.
func (o object) side(key string, def int) int {
	const limit = 1 << 10
	if o.has(key) {
		if _, one := asInteger(o.raw[key]); !one {
			list := o.integers(key, 3, 1, limit)
			for _, n := range list {
				if n != list[0] {
					o.fail(key, "be the same on all axes")
				}
			}
			if len(list) == 0 {
				o.fail(key, "be an integer")
				return def
			}
			return list[0]
		}
	}
	return o.integer(key, def, 1, limit)
}

// Pictures describes a model's image input: the patch sizes of its tower, and the token ids of images in a prompt, 0 if
// the configuration has none.
type Pictures struct {
	Patch, Temporal, Merge   int
	Image, Video, Start, End int
}

// Pictures returns nil for models without a tower.
func (m *Qwen35) Pictures() *Pictures {
	v := m.Vision
	if v == nil {
		return nil
	}
	return &Pictures{v.Patch, v.Temporal, v.Merge, m.ImageToken, m.VideoToken, m.VisionStart, m.VisionEnd}
}

const visionPrefix = "model.visual."

// visionPart returns the part of the tower's tensors, with its published prefixes.
func visionPart() Part {
	p := Part{Name: "vision", Prefix: visionPrefix, Accept: []string{"vision_tower.", "visual."}}
	for _, text := range textPrefixes {
		for _, tower := range []string{"vision_tower.", "model.visual.", "visual."} {
			if name := text + tower; name != visionPrefix && text != "" {
				p.Accept = append(p.Accept, name)
			}
		}
	}
	return p
}

// table adds the tower's tensors. Rank 0 encodes all pictures and broadcasts their vectors.
func (v *QwenVision) table(t *Table) {
	hidden, merged := int64(v.Hidden), int64(v.Hidden)*int64(v.Merge)*int64(v.Merge)
	c, frames, side := int64(v.Channels), int64(v.Temporal), int64(v.Patch)
	p := visionPrefix
	patch := t.add(p+"patch_embed.proj.weight", rankZero, hidden, c, frames, side, side)
	patch.Aliases, patch.Reshape = []string{p + "patch_embed.weight"}, [][]int64{{hidden, c * frames * side * side}}
	bias := t.add(p+"patch_embed.proj.bias", rankZero, hidden)
	bias.Aliases, bias.Optional = []string{p + "patch_embed.bias"}, true
	pos := t.add(p+"pos_embed.weight", rankZero, int64(v.Positions), hidden)
	pos.Aliases, pos.FreeRows = []string{p + "pos_embed", p + "position_embedding.weight", p + "position_embedding"}, true
	for i := range v.Depth {
		block := p + "blocks." + strconv.Itoa(i) + "."
		t.towerNorm(block+"norm1", hidden)
		t.packedQKV(block, hidden)
		t.aliased(block+"attn.proj", hidden, hidden, block+"attn_out", block+"attn.o_proj")
		t.towerNorm(block+"norm2", hidden)
		t.aliased(block+"mlp.linear_fc1", int64(v.Intermediate), hidden, block+"mlp.fc1")
		t.aliased(block+"mlp.linear_fc2", hidden, int64(v.Intermediate), block+"mlp.fc2")
	}
	t.towerNorm(p+"merger.norm", hidden, p+"merger.ln_q")
	t.aliased(p+"merger.linear_fc1", merged, merged, p+"merger.mlp.0")
	t.aliased(p+"merger.linear_fc2", int64(v.Out), merged, p+"merger.mlp.2")
}

// towerNorm adds the weight and bias of a LayerNorm under all published names: X.weight and X.bias, or X and X_bias.
func (t *Table) towerNorm(name string, size int64, others ...string) {
	weight, bias := t.add(name+".weight", rankZero, size), towerBias(name, size)
	for _, n := range append([]string{name}, others...) {
		if n != name {
			weight.Aliases, bias.Aliases = append(weight.Aliases, n+".weight"), append(bias.Aliases, n+".bias")
		}
		weight.Aliases, bias.Aliases = append(weight.Aliases, n), append(bias.Aliases, n+"_bias")
	}
	t.Specs = append(t.Specs, bias)
}

// towerBias returns the bias of a tower's layer, which is not in the table yet.
func towerBias(name string, size int64) Spec {
	return Spec{Name: name + ".bias", Shape: []int64{size}, Split: rankZero}
}

// aliased adds a linear layer with bias that is published under several names.
func (t *Table) aliased(name string, out, in int64, others ...string) {
	weight, bias := t.add(name+".weight", rankZero, out, in), towerBias(name, out)
	for _, n := range others {
		weight.Aliases, bias.Aliases = append(weight.Aliases, n+".weight"), append(bias.Aliases, n+".bias")
	}
	t.Specs = append(t.Specs, bias)
}

// packedQKV adds the fused projection of queries, keys and values.
func (t *Table) packedQKV(block string, hidden int64) {
	for _, kind := range []struct {
		suffix string
		shape  []int64
	}{{".weight", []int64{hidden, hidden}}, {".bias", []int64{hidden}}} {
		packed := append([]int64{3 * hidden}, kind.shape[1:]...)
		s := t.add(block+"attn.qkv"+kind.suffix, rankZero, packed...)
		s.Aliases = []string{block + "attn_qkv" + kind.suffix}
		s.Layout, s.Group = fused, block+"attn"
		for _, names := range [][]string{{"attn.q_proj", "attn.k_proj", "attn.v_proj"}, {"attn_q", "attn_k", "attn_v"}} {
			f := Form{Layout: split, Make: Stack, Count: 1}
			for _, n := range names {
				f.Names, f.Shapes = append(f.Names, block+n+kind.suffix), append(f.Shapes, kind.shape)
			}
			s.Forms = append(s.Forms, f)
		}
	}
}
