// Package decoder describes decoder-only transformers as data.
//
// Most model types are Llama with a few differences. A [Description] holds the differences of a model, and nothing that
// a configuration has for all decoders: sizes, biases, windows, the parameters of the rope. Its values are plain, so
// the engine's layers, the tensor table and the page docs/differences.md follow from one description.
//
// Each field is used by two model types or more. What one type alone has stays in its package below models.
package decoder

// Description is what a decoder has that Llama has not. The zero value is Llama: RMSNorms before attention and before
// the network; grouped-query attention with a rope; a gated MLP.
type Description struct {
	Norm  Norm  // all norms
	Norms Norms // of a layer; zero = those of Llama
	// Parallel: the network reads the input of attention, not the sum of it and attention's output.
	Parallel bool

	HeadNorms   HeadNorms // zero = none
	Interleaved bool      // the rope pairs channels 2j and 2j+1, as GPT-J does, not j and j+dim/2
	RopeLayers  []bool    // by layer: queries and keys are rotated; nil = in all layers
	Growth      Growth    // zero = none
	Clip        float64   // queries, keys and values are limited to [-Clip, Clip]; 0 = they are not
	Sinks       []bool    // by layer: each query head has a score without a value; nil = in no layer
	// AttentionScale is the factor of the attention scores; 0 = 1/sqrt(head size).
	AttentionScale float64
	Gate           string // name of the projection whose sigmoids multiply attention's output; "" = none

	Network string // name of the network of a layer; "" = mlp
	Plain   Plain  // the MLP has no gate; zero = it has one

	Positions      int     // rows of a table of learned positions, which are added to the embeddings; 0 = none
	EmbeddingScale float64 // factor of the embeddings; 0 = 1
	ResidualScale  float64 // factor of what attention and network add to the residual stream; 0 = 1
	LogitScale     float64 // factor of the logits; 0 = 1
	LogitCap       float64 // logits become LogitCap*tanh(logit/LogitCap); 0 = they stay
	HeadBias       bool    // the output head has a bias
}

// Norm is a kind of norm. The zero value is an RMSNorm.
type Norm struct {
	LayerNorm bool
	Bias      bool // of a LayerNorm
	Offset    bool // stored weights are offsets from 1
	Unweighed bool // there are no weights
}

// Norms are the names of a layer's norms; "" = there is none. If the network has the name of the mixer's norm, it is
// the same one.
type Norms struct {
	Mixer, MixerPost     string // of the input of attention, and of its output
	Network, NetworkPost string
}

// Norms of layers, with their most common names.
var (
	Before       = Norms{Mixer: "input_layernorm", Network: "post_attention_layernorm"}
	After        = Norms{MixerPost: "post_attention_layernorm", NetworkPost: "post_feedforward_layernorm"}
	BeforeShared = Norms{Mixer: "input_layernorm", Network: "input_layernorm"}
	Around       = Norms{
		Mixer: "input_layernorm", MixerPost: "post_attention_layernorm",
		Network: "pre_feedforward_layernorm", NetworkPost: "post_feedforward_layernorm",
	}
)

// HeadNorms are norms of queries and keys.
type HeadNorms struct {
	Q, K      string // names
	Over      Over
	AfterRope bool
}

// Over is what a norm of queries or keys normalizes.
type Over int

// A head with weights that all heads share, a head with weights of its own, without bias, or all heads together.
const (
	Head Over = iota
	OwnHead
	Row
)

// QK are norms of query and key heads with their most common names.
var QK = HeadNorms{Q: "q_norm", K: "k_norm"}

// Growth multiplies the query at a position by 1 + Beta*ln(1 + floor(position/Context)).
type Growth struct {
	Beta    float64
	Context int
}

// Plain are the names of the linear layers of an MLP without a gate.
type Plain struct{ Up, Down string }

// UpDown are the most common names of them.
var UpDown = Plain{Up: "up_proj", Down: "down_proj"}

// Names returns the names of a layer's norms.
func (d *Description) Names() Norms {
	if d.Norms == (Norms{}) {
		return Before
	}
	return d.Norms
}

// Rotates reports whether a layer has the rope.
func (d *Description) Rotates(layer int) bool { return d.RopeLayers == nil || d.RopeLayers[layer] }

// HasSinks reports whether a layer has attention sinks.
func (d *Description) HasSinks(layer int) bool { return d.Sinks != nil && d.Sinks[layer] }
