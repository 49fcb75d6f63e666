package config

import (
	"cmp"

	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/table"
)

// Own adds parts of layers that descriptions have not. The functions report whether they did; else, or if they are nil,
// the part is as described. name is the prefix of the layer's tensors.
type Own struct {
	Mixer, Network func(t *table.Table, name string, layer int) bool
}

// Table makes the tensor table of a model.
func (d Decoder) Table(modelType string) table.Table { return d.OwnTable(modelType, Own{}) }

// OwnTable makes the tensor table of a model with parts of its own.
func (d Decoder) OwnTable(modelType string, own Own) table.Table {
	last := func(t *table.Table, name string) { d.addNorm(t, name, d.Hidden) }
	t := d.TableWith(modelType, last, func(t *table.Table, name string, i int) {
		d.addLayer(t, name, i, d.Mixture != nil && d.Mixture.Sparse[i], own)
	})
	if d.HeadBias {
		d.AddHeadBias(&t)
	}
	if d.Positions > 0 {
		t.Add(d.Prefix+"embed_positions.weight", table.Whole, int64(d.Positions), int64(d.Hidden))
	}
	return t
}

// AddLayer adds the tensors of a further layer, like the first but for its experts. Their names start with name.
func (d Decoder) AddLayer(t *table.Table, name string, experts bool) {
	d.addLayer(t, name, 0, experts, Own{})
}

func (d Decoder) addLayer(t *table.Table, name string, i int, experts bool, own Own) {
	norms := d.Names()
	norm := func(part string) {
		if part != "" {
			d.addNorm(t, name+part, d.Hidden)
		}
	}
	norm(norms.Mixer)
	if own.Mixer == nil || !own.Mixer(t, name, i) {
		d.addMixer(t, name+"self_attn", i)
	}
	norm(norms.MixerPost)
	if norms.Network != norms.Mixer {
		norm(norms.Network)
	}
	if own.Network == nil || !own.Network(t, name, i) {
		d.addNetwork(t, name+cmp.Or(d.Network, "mlp"), experts)
	}
	norm(norms.NetworkPost)
}

func (d Decoder) addNorm(t *table.Table, name string, size int) {
	if d.Norm.Unweighed {
		return
	}
	t.Norm(name, int64(size), d.Norm.Offset && !d.Norm.LayerNorm)
	if d.Norm.Bias {
		t.Add(name+".bias", table.Whole, int64(size))
	}
}

func (d Decoder) addMixer(t *table.Table, name string, layer int) {
	queries, keys := table.QueryRows(d.Heads, d.KVHeads), table.KeyRows(d.Heads, d.KVHeads)
	d.AddProjections(t, name, d.QueryWidth())
	if d.HeadNorms.Q != "" {
		d.addHeadNorm(t, name+"."+d.HeadNorms.Q, d.Heads, queries)
		d.addHeadNorm(t, name+"."+d.HeadNorms.K, d.KVHeads, keys)
	}
	if d.Gate != "" {
		t.Linear(name+"."+d.Gate, d.QueryWidth(), int64(d.Hidden), false, queries)
	}
	if d.HasSinks(layer) {
		t.Add(name+".sinks", queries, int64(d.Heads))
	}
}

func (d Decoder) addHeadNorm(t *table.Table, name string, heads int, by table.Split) {
	switch d.HeadNorms.Over {
	case decoder.Head:
		d.addNorm(t, name, d.HeadDim)
	case decoder.OwnHead:
		t.Add(name+".weight", by, int64(heads), int64(d.HeadDim))
	case decoder.Row:
		t.Add(name+".weight", by, int64(heads)*int64(d.HeadDim))
	}
}

func (d Decoder) addNetwork(t *table.Table, name string, experts bool) {
	switch {
	case experts:
		d.Mixture.AddTo(t, name, d.Hidden)
	case d.Plain != decoder.Plain{}:
		d.AddPlainMLP(t, name+"."+d.Plain.Up, name+"."+d.Plain.Down)
	default:
		d.AddMLP(t, name, d.Intermediate)
	}
}
