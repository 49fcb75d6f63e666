package config

import (
	"github.com/ingotml/ingot/arch/table"
)

// DropNext drops the layers after the last, which predict further tokens.
func (c Common) DropNext(t *table.Table, layers int) {
	for i := range layers {
		t.LeaveOut("mtp", "a head for tokens after the next (num_nextn_predict_layers), which is not supported for "+
			t.ModelType, c.LayerName(c.Layers+i)+"*")
	}
}

// NextName returns the name prefix of a multi-token prediction head that is numbered like the layer after the last.
func (c Common) NextName() string { return c.LayerName(c.Layers) }

// AddNextPart declares that the tensors of a multi-token prediction head, whose names start with name, may be absent.
// name starts with the prefix of the text model.
func (c Common) AddNextPart(t *table.Table, name string) {
	own := table.Part{Name: "mtp", Prefix: name, Optional: true}
	for _, prefix := range t.Parts[0].Accept {
		own.Accept = append(own.Accept, prefix+name[len(c.Prefix):])
	}
	t.Parts = append([]table.Part{own}, t.Parts...)
}

// AddNextInputs adds what joins the two inputs of a multi-token prediction head: the vector of a token and a hidden
// state.
func (c Common) AddNextInputs(t *table.Table, name string) {
	hidden := int64(c.Hidden)
	t.Norm(name+"enorm", hidden, false)
	t.Norm(name+"hnorm", hidden, false)
	t.Linear(name+"eh_proj", hidden, 2*hidden, false, table.Whole)
}

// AddNext adds a multi-token prediction head that is numbered like the layer after the last: a layer, which block adds,
// and what joins its two inputs. Its tensors may be absent. Its embedding and output head are the model's.
// https://github.com/deepseek-ai/DeepSeek-V3/blob/main/README_WEIGHTS.md
func (c Common) AddNext(t *table.Table, block func(t *table.Table, layer string)) {
	name := c.NextName()
	c.AddNextPart(t, name)
	c.AddNextInputs(t, name)
	block(t, name)
	t.Norm(name+"shared_head.norm", int64(c.Hidden), false)
	t.Drop("a copy of the model's embedding or output head, which the multi-token prediction head shares",
		name+"embed_tokens.weight", name+"shared_head.head.weight")
}
