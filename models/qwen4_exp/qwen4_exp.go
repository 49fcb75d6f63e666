// Package qwen4_exp runs the text model of model type "qwen4_exp": gated delta nets, gated attention over blocks of
// positions that an indexer chooses, and experts. Blocks read from several residual streams and write to all of them.
// Some layers add embeddings of n-grams to these.
//
// Reference: transformers 5.23, models/qwen4_exp/modeling_qwen4_exp.py.
package qwen4_exp

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("qwen4_exp", build) }

// Model is a Qwen 4 decoder.
type Model struct {
	*nn.Decoder // its ends
	layers      []layer
	streams     int
	hidden      int
	last        *reader
}

// layer is a decoder layer.
type layer struct {
	nGrams                     *nGrams // nil: the layer has none
	mixerReader, networkReader *reader
	mixer                      nn.Mixer
	network                    nn.Network
}

// states is the number of caches of a layer.
const states = 3

func build(t *mlx.Thread, c *types.Qwen4Exp, w *nn.Weights) *Model {
	m := &Model{
		Decoder: nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{}),
		streams: c.Streams,
		hidden:  c.Hidden,
		last:    newReader(w, c.Prefix+"hyper_connection_mixer", c, false),
	}
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i := range c.Layers {
		name := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		l := layer{
			mixerReader:   newReader(w, name+"attn_hyper_connection", c, true),
			networkReader: newReader(w, name+"mlp_hyper_connection", c, true),
			network:       nn.NewMixture(w, name+"mlp", c.Hidden, c.Mixture),
		}
		if c.Full[i] {
			l.mixer = newAttention(w, name+"self_attn", states*i, c, rope)
		} else {
			l.mixer = recurrent.NewGatedDelta(w, name+"linear_attn", states*i, c.Delta, c.Hidden, c.NormEps)
		}
		for _, table := range c.NGrams.Tables {
			if table.Layer == i {
				l.nGrams = newNGrams(t, w, name+"ple", states*i+1, c, table)
			}
		}
		m.layers = append(m.layers, l)
	}
	return m
}

// Forward implements [models.Model].
func (m *Model) Forward(b *nn.Batch) *mlx.Array {
	h := m.Stage().Enter(b, func() *mlx.Array {
		x := b.Embedded(m.Embed(b.Tokens))
		return mlx.BroadcastTo(mlx.ExpandDims(x, 1), x.Dim(0), m.streams, x.Dim(1))
	}, m.streams, m.hidden)
	first, end := m.Stage().Own(len(m.layers))
	for i := first; i < end; i++ {
		if i == len(m.layers)-1 {
			b = b.Ending()
		}
		h = m.layers[i].apply(b, h)
	}
	if m.Stage() != nil {
		return m.Stage().Leave(b, h)
	}
	in, _ := m.last.read(h)
	return in
}

// Finish implements [models.Staged].
func (m *Model) Finish(rows int) *mlx.Array {
	in, _ := m.last.read(m.Stage().Returned(rows, m.streams, m.hidden))
	return in
}

// apply returns the streams [A, n, hidden] after the layer, of the rows that b.Queried selects.
func (l *layer) apply(b *nn.Batch, h *mlx.Array) *mlx.Array {
	if l.nGrams != nil {
		h = mlx.Add(h, l.nGrams.apply(b, h))
	}
	in, factors := l.mixerReader.read(h)
	_, out := l.mixer.AddApply(b, nil, in, nil)
	h = write(b.Queried(h), out, b.Queried(factors))
	in, factors = l.networkReader.read(h)
	_, out = l.network.AddApply(nil, in, nil)
	return write(h, out, factors)
}
