package nn

import (
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/shard"
)

// Decoder is a decoder-only transformer: an embedding, blocks, a norm and an output head. A model's package fills
// Blocks; its forward pass is then the decoder's.
//
// Each block returns its last output unadded, so that the next norm adds it: one operation instead of two.
type Decoder struct {
	Blocks []Block
	Norm   *Norm // before the head

	options DecoderOptions
	width   int
	kinds   []cache.Kind
	stage   *Stage // nil if this rank has all layers
	embed   *Embedding
	head    *Linear     // nil if embeddings are tied
	vocab   *vocabulary // nil if this rank computes all logits
	unit    *mlx.Array  // 1 divided by the length of each row of the head; nil means that they stay
}

// DecoderOptions are the differences between the models' ends.
type DecoderOptions struct {
	Positions      *Positions // added to the embedding vectors; nil means none
	EmbeddingNorm  *Norm      // of the embedding vectors; nil means none
	Norm           *Norm      // before the head; nil means none
	EmbeddingScale float64    // of the embedding vectors; 0 means 1
	LogitScale     float64    // 0 means 1
	LogitCap       float64    // logits become LogitCap*tanh(logit/LogitCap); 0 disables it
	HeadBias       bool
	UnitHead       bool // the rows of the head, which is not tied, are divided by their lengths
}

// NewDecoder takes the embedding and, unless embeddings are tied, lm_head. It has no blocks yet. states are those
// of the configuration's layers.
func NewDecoder(w *Weights, c config.Common, states []config.LayerState, o DecoderOptions) *Decoder {
	d := &Decoder{
		Norm:    o.Norm,
		options: o,
		width:   c.Hidden,
		kinds:   w.stage.kinds(states),
		stage:   w.stage,
		embed:   NewEmbedding(w, c.Embedding(), c.Vocab, c.Hidden),
	}
	if o.EmbeddingScale != 0 {
		d.embed.Scaled(o.EmbeddingScale)
	}
	var own shard.Range
	if d.vocab, own = w.newVocabulary(c.Vocab); d.vocab != nil && c.TieEmbeddings {
		d.embed.only(w, own)
	}
	switch {
	case !c.TieEmbeddings:
		d.head = NewLinear(w, "lm_head", c.Vocab, c.Hidden, o.HeadBias)
		if o.UnitHead && d.head.weight != nil {
			d.unit = w.Constant(d.head.weight.inverseLengths())
		}
	case o.HeadBias && !c.Headless:
		d.embed.head.bias = w.Take("lm_head.bias", c.Vocab)
	}
	return d
}

// Kinds returns the caches that layers with the given states need.
func Kinds(states []config.LayerState) []cache.Kind {
	kinds := make([]cache.Kind, len(states))
	for i, s := range states {
		switch {
		case s.Fixed > 0:
			kinds[i] = cache.Recurrent
		case s.Rate > 0:
			kinds[i] = cache.CompressedBy(int(s.Rate))
		case s.PerToken > 0:
			kinds[i] = cache.Rotating(int(s.Window))
		}
		if s.Exact {
			kinds[i] = kinds[i].Exact()
		}
	}
	return kinds
}

// Layers returns the kind of cache that each layer needs.
func (d *Decoder) Layers() []cache.Kind { return d.kinds }

// Embed returns the embedding vectors [T, hidden] of tokens [T].
func (d *Decoder) Embed(tokens *mlx.Array) *mlx.Array { return d.embed.Lookup(tokens) }

// Stage returns the rank's place in a pipeline; nil if there is none.
func (d *Decoder) Stage() *Stage { return d.stage }

// Forward returns the normalized final hidden states of the wanted rows, and advances the caches by all rows. In a
// pipeline it ends with the rows that this rank sends, and on rank 0 [Decoder.Finish] returns the hidden states.
func (d *Decoder) Forward(b *Batch) *mlx.Array {
	h := d.stage.Enter(b, func() *mlx.Array {
		return d.options.EmbeddingNorm.Apply(d.options.Positions.Add(b, b.Embedded(d.Embed(b.Tokens))))
	}, d.width)
	var y *mlx.Array // the previous block's output, not yet added to h
	first, end := d.stage.Own(len(d.Blocks))
	for i := first; i < end; i++ {
		if i == len(d.Blocks)-1 {
			b = b.Ending()
		}
		h, y = d.Blocks[i].Apply(b, h, y)
	}
	if d.stage != nil {
		return d.stage.Leave(b, mlx.Add(h, y))
	}
	_, x := d.Norm.AddApply(h, y)
	return x
}

// Finish returns on rank 0 of a pipeline the normalized final hidden states of the wanted rows, after Forward.
func (d *Decoder) Finish(rows int) *mlx.Array { return d.Norm.Apply(d.stage.Returned(rows, d.width)) }

// Head returns the logits [W, vocab] of hidden states.
func (d *Decoder) Head(hidden *mlx.Array) *mlx.Array {
	var logits *mlx.Array
	if d.head == nil {
		logits = d.embed.Project(hidden)
	} else {
		logits = d.head.Apply(hidden)
	}
	if d.unit != nil {
		logits = mlx.AsType(mlx.Multiply(mlx.AsType(logits, mlx.Float32), d.unit), logits.DType())
	}
	logits = d.vocab.all(logits)
	if s := d.options.LogitScale; s != 0 {
		logits = mlx.MultiplyScalar(logits, s)
	}
	if limit := d.options.LogitCap; limit > 0 {
		logits = mlx.Softcap(logits, limit)
	}
	return logits
}
