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
	// Mixer and Network make the parts of a layer; nil = as described.
	Mixer   func(b *Builder, l Layer) nn.Mixer
	Network func(b *Builder, l Layer) nn.Network
}

// Layer is what differs between the layers of a model.
type Layer struct {
	Prefix  string // of the names of its tensors
	Index   int    // of its cache
	Rope    *nn.Rope
	Window  int // 0 = it attends to all positions
	Experts bool
}

// Unless returns a function for Own.Mixer that makes the mixers of layers without full attention.
func Unless(full []bool, mixer func(prefix string, layer int) nn.Mixer) func(*Builder, Layer) nn.Mixer {
	return func(_ *Builder, l Layer) nn.Mixer {
		if full[l.Index] {
			return nil
		}
		return mixer(l.Prefix, l.Index)
	}
}

// Build makes a model.
func Build(t *mlx.Thread, c arch.Described, w *nn.Weights, own Own) *nn.Decoder {
	m, _ := BuildWith(t, c, w, own)
	return m
}

// BuildWith makes a model, and returns the builder of further layers.
func BuildWith(t *mlx.Thread, c arch.Described, w *nn.Weights, own Own) (*nn.Decoder, *Builder) {
	b := newBuilder(t, c, w, own)
	m := nn.NewDecoder(w, b.Common, b.states, b.ends())
	for i := range b.Layers {
		m.Blocks = append(m.Blocks, b.Block(b.layer(i)))
	}
	return m, b
}

// layer returns a layer of the description.
func (b *Builder) layer(i int) Layer {
	l := Layer{Prefix: fmt.Sprintf("%slayers.%d.", b.Prefix, i), Index: i, Window: int(b.states[i].Window)}
	if b.Rotates(i) {
		if l.Rope = b.FullRope; l.Window > 0 {
			l.Rope = b.SlidingRope
		}
	}
	l.Experts = b.Mixture != nil && b.Mixture.Sparse[i]
	return l
}

// Builder makes the parts of a model.
type Builder struct {
	config.Decoder
	own    Own
	w      *nn.Weights
	states []config.LayerState
	// FullRope is the rope of full layers, and SlidingRope of sliding ones; nil if no layer rotates.
	FullRope, SlidingRope *nn.Rope
}

func newBuilder(t *mlx.Thread, c arch.Described, w *nn.Weights, own Own) *Builder {
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
		b.FullRope = rope(b.Dense.Rope)
		b.SlidingRope = b.FullRope
		if own := b.Decoder.SlidingRope; own != nil {
			b.SlidingRope = rope(*own)
		}
	}
	return b
}

func (b *Builder) hasRope() bool {
	for i := range b.Layers {
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

// Block takes the tensors of a layer.
func (b *Builder) Block(l Layer) nn.Block {
	names := b.Names()
	norm := func(name string) *nn.Norm {
		if name == "" {
			return nil
		}
		return b.norm(l.Prefix+name, b.Hidden)
	}
	block := nn.Block{
		MixerNorm:   norm(names.Mixer),
		Mixer:       b.mixer(l),
		MixerPost:   norm(names.MixerPost),
		NetworkPost: norm(names.NetworkPost),
		Scale:       b.ResidualScale,
		Parallel:    b.Parallel,
	}
	if block.NetworkNorm = block.MixerNorm; names.Network != names.Mixer {
		block.NetworkNorm = norm(names.Network)
	}
	block.Network = b.network(l)
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

// mixer takes the attention of a layer.
func (b *Builder) mixer(l Layer) nn.Mixer {
	if b.own.Mixer != nil {
		if m := b.own.Mixer(b, l); m != nil {
			return m
		}
	}
	name := l.Prefix + "self_attn"
	if b.Gate != "" {
		return nn.NewGatedAttention(b.w, name, l.Index, b.Common, nn.GatedAttentionOptions{
			Gate: "." + b.Gate, Rope: l.Rope, Window: l.Window,
		})
	}
	o := nn.AttentionOptions{
		Rope:       l.Rope,
		Window:     l.Window,
		Scale:      b.AttentionScale,
		WholeNorms: b.HeadNorms.Over == decoder.Row,
		NormsLast:  b.HeadNorms.AfterRope,
		Growth:     nn.NewGrowth(b.Growth.Beta, b.Growth.Context),
		Sinks:      b.HasSinks(l.Index),
		Clip:       b.Clip,
	}
	if b.HeadNorms.Q != "" {
		o.QNorm, o.KNorm = b.headNorm(name+"."+b.HeadNorms.Q, b.Heads), b.headNorm(name+"."+b.HeadNorms.K, b.KVHeads)
	}
	if b.own.Attention != nil {
		b.own.Attention(l.Index, &o)
	}
	return nn.NewAttention(b.w, name, l.Index, b.Common, o)
}

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

// network takes the network of a layer.
func (b *Builder) network(l Layer) nn.Network {
	if b.own.Network != nil {
		if n := b.own.Network(b, l); n != nil {
			return n
		}
	}
	name := l.Prefix + cmp.Or(b.Description.Network, "mlp")
	switch {
	case l.Experts:
		return nn.NewMixture(b.w, name, b.Hidden, *b.Mixture)
	case b.Plain != decoder.Plain{}:
		return nn.NewPlainMLP(b.w, name+"."+b.Plain.Up, name+"."+b.Plain.Down, b.Hidden, b.Intermediate, b.MLPBias,
			nn.ActivationOf(b.Activation))
	}
	return nn.NewMLP(b.w, name, b.Hidden, b.Intermediate, b.MLPBias, gates[b.Activation])
}

// gates are the activation functions of gates, by their canonical names in arch.
var gates = map[string]mlx.Activation{"silu": mlx.SiLUActivation, "gelu_pytorch_tanh": mlx.GELUTanhActivation}
