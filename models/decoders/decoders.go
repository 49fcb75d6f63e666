// Package decoders builds models from descriptions of package arch/decoder. Most model types need no more. A type that
// has something of its own builds the rest here, too, and says in its package what replaces a part.
package decoders

import (
	"cmp"
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	_ "github.com/ingotml/ingot/arch/types" // registers every model type
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() {
	for _, a := range arch.All() {
		if a.Plain {
			models.Register(a.ModelType, func(t *mlx.Thread, c arch.Described, w *nn.Weights) *nn.Decoder {
				return Build(t, c, w, Own{})
			})
		}
	}
}

// Own is what a type has that descriptions have not. Nil functions change nothing.
type Own struct {
	Ends      func(o *nn.DecoderOptions)
	Rope      func(r *nn.Rope) *nn.Rope
	Attention func(layer int, o *nn.AttentionOptions)
	Network   func(name string, layer int) nn.Network
}

// Build makes a model.
func Build(t *mlx.Thread, c arch.Described, w *nn.Weights, own Own) *nn.Decoder {
	b := NewBuilder(t, c, w, own)
	m := nn.NewDecoder(w, b.Common, b.states, b.ends())
	for i := range b.states {
		m.Blocks = append(m.Blocks, b.Block(fmt.Sprintf("%slayers.%d.", b.Prefix, i), i))
	}
	return m
}

// Builder makes the parts of a model.
type Builder struct {
	config.Decoder
	own           Own
	w             *nn.Weights
	states        []config.LayerState
	rope, sliding *nn.Rope // nil if no layer rotates
}

// NewBuilder returns the builder of a model, which takes tensors of w.
func NewBuilder(t *mlx.Thread, c arch.Described, w *nn.Weights, own Own) *Builder {
	b := &Builder{Decoder: c.Decoder(), own: own, w: w, states: c.State()}
	rope := func(r config.Rope) *nn.Rope {
		rope := nn.NewRope(t, w, r, b.HeadDim)
		if b.Interleaved {
			rope = rope.Interleaved()
		}
		if own.Rope != nil {
			rope = own.Rope(rope)
		}
		return rope
	}
	if b.hasRope() {
		b.rope = rope(b.Dense.Rope)
		b.sliding = b.rope
		if b.SlidingRope != nil {
			b.sliding = rope(*b.SlidingRope)
		}
	}
	return b
}

func (b *Builder) hasRope() bool {
	for i := range b.states {
		if b.Rotates(i) {
			return true
		}
	}
	return false
}

// ends are the differences before the first layer and after the last.
func (b *Builder) ends() nn.DecoderOptions {
	o := nn.DecoderOptions{
		Norm:           b.norm(b.LastNorm(), b.Hidden),
		EmbeddingScale: b.EmbeddingScale,
		LogitScale:     b.LogitScale,
		LogitCap:       b.LogitCap,
		HeadBias:       b.HeadBias,
	}
	if b.Positions > 0 {
		o.Positions = nn.NewPositions(b.w, b.Prefix+"embed_positions", b.Positions, b.Hidden)
	}
	if b.own.Ends != nil {
		b.own.Ends(&o)
	}
	return o
}

// Block takes the tensors of a layer, whose names start with p.
func (b *Builder) Block(p string, layer int) nn.Block {
	names := b.Names()
	norm := func(name string) *nn.Norm {
		if name == "" {
			return nil
		}
		return b.norm(p+name, b.Hidden)
	}
	block := nn.Block{
		MixerNorm:   norm(names.Mixer),
		Mixer:       b.mixer(p+"self_attn", layer),
		MixerPost:   norm(names.MixerPost),
		NetworkPost: norm(names.NetworkPost),
		Scale:       b.ResidualScale,
		Parallel:    b.Parallel,
	}
	if block.NetworkNorm = block.MixerNorm; names.Network != names.Mixer {
		block.NetworkNorm = norm(names.Network)
	}
	block.Network = b.network(p, layer)
	return block
}

// norm takes NAME.weight [size], and a bias if the norms have one.
func (b *Builder) norm(name string, size int) *nn.Norm {
	n := b.Norm
	switch {
	case n.LayerNorm && n.Unweighed:
		return nn.PlainLayerNorm(b.NormEps)
	case n.Unweighed:
		return nn.PlainRMSNorm(b.NormEps)
	case n.LayerNorm && n.Offset:
		return nn.NewLayerNormPlusOne(b.w, name, size, b.NormEps)
	case n.LayerNorm:
		return nn.NewLayerNorm(b.w, name, size, b.NormEps, n.Bias)
	case n.Offset:
		return nn.NewRMSNorm(b.w, name, size, b.NormEps).PlusOne()
	}
	return nn.NewRMSNorm(b.w, name, size, b.NormEps)
}

// mixer takes the tensors NAME.* of a layer's attention.
func (b *Builder) mixer(name string, layer int) nn.Mixer {
	if b.Gate != "" {
		return nn.NewGatedAttention(b.w, name, layer, b.Common, nn.GatedAttentionOptions{
			Gate: "." + b.Gate, Rope: b.Rope(layer), Window: b.Window(layer),
		})
	}
	o := nn.AttentionOptions{
		Rope:       b.Rope(layer),
		Window:     b.Window(layer),
		Scale:      b.AttentionScale,
		WholeNorms: b.HeadNorms.Over == decoder.Row,
		NormsLast:  b.HeadNorms.AfterRope,
		Growth:     nn.NewGrowth(b.Growth.Beta, b.Growth.Context),
		Sinks:      b.HasSinks(layer),
		Clip:       b.Clip,
	}
	if b.HeadNorms.Q != "" {
		o.QNorm, o.KNorm = b.headNorm(name+"."+b.HeadNorms.Q, b.Heads), b.headNorm(name+"."+b.HeadNorms.K, b.KVHeads)
	}
	if b.own.Attention != nil {
		b.own.Attention(layer, &o)
	}
	return nn.NewAttention(b.w, name, layer, b.Common, o)
}

// Rope returns the rope of a layer; nil if there is none.
func (b *Builder) Rope(layer int) *nn.Rope {
	switch {
	case !b.Rotates(layer):
		return nil
	case b.states[layer].Window > 0:
		return b.sliding
	}
	return b.rope
}

// Window returns the window of a layer; 0 = all positions.
func (b *Builder) Window(layer int) int { return int(b.states[layer].Window) }

// headNorm takes the norm of queries or keys.
func (b *Builder) headNorm(name string, heads int) *nn.Norm {
	switch b.HeadNorms.Over {
	case decoder.OwnHead:
		return nn.NewHeadNorm(b.w, name, heads, b.HeadDim, b.NormEps)
	case decoder.Row:
		return b.norm(name, heads*b.HeadDim)
	}
	return b.norm(name, b.HeadDim)
}

// network takes the network of a layer, whose tensors' names start with p.
func (b *Builder) network(p string, layer int) nn.Network {
	name := p + cmp.Or(b.Description.Network, "mlp")
	switch {
	case b.own.Network != nil:
		return b.own.Network(name, layer)
	case b.Mixture != nil && b.Mixture.Sparse[layer]:
		return nn.NewMixture(b.w, name, b.Hidden, *b.Mixture)
	case b.Plain != decoder.Plain{}:
		return nn.NewPlainMLP(b.w, name+"."+b.Plain.Up, name+"."+b.Plain.Down, b.Hidden, b.Intermediate, b.MLPBias,
			nn.ActivationOf(b.Activation))
	}
	return nn.NewMLP(b.w, name, b.Hidden, b.Intermediate, b.MLPBias, gates[b.Activation])
}

// gates are the activation functions of gates, by their canonical names in arch.
var gates = map[string]mlx.Activation{"silu": mlx.SiLUActivation, "gelu_pytorch_tanh": mlx.GELUTanhActivation}
