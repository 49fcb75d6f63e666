package arch

// nextDraftDoc describes the draft of models whose multi-token prediction head is the layer after the last.
const nextDraftDoc = "its own multi-token prediction head (the layer after the last)"

// dropNext drops the layers after the last, which predict further tokens.
func (c Common) dropNext(t *Table, layers int) {
	for i := range layers {
		t.leaveOut("mtp", "a head for tokens after the next (num_nextn_predict_layers), which is not supported for "+
			t.ModelType, c.layer(c.Layers+i)+"*")
	}
}

// nextLayer returns the name prefix of a multi-token prediction head that is numbered like the layer after the last.
func (c Common) nextLayer() string { return c.layer(c.Layers) }

// nextPart declares that the tensors of a multi-token prediction head, whose names start with name, may be absent. name
// starts with the prefix of the text model.
func (c Common) nextPart(t *Table, name string) {
	own := Part{Name: "mtp", Prefix: name, Optional: true}
	for _, prefix := range t.Parts[0].Accept {
		own.Accept = append(own.Accept, prefix+name[len(c.Prefix):])
	}
	t.Parts = append([]Part{own}, t.Parts...)
}

// joinNext adds what joins the two inputs of a multi-token prediction head: the vector of a token and a hidden state.
func (c Common) joinNext(t *Table, name string) {
	hidden := int64(c.Hidden)
	t.norm(name+"enorm", hidden, false)
	t.norm(name+"hnorm", hidden, false)
	t.linear(name+"eh_proj", hidden, 2*hidden, false, replicated)
}

// addNext adds a multi-token prediction head that is numbered like the layer after the last: a layer, which block adds,
// and what joins its two inputs. Its tensors may be absent. Its embedding and output head are the model's.
// https://github.com/deepseek-ai/DeepSeek-V3/blob/main/README_WEIGHTS.md
func (c Common) addNext(t *Table, block func(t *Table, layer string)) {
	name := c.nextLayer()
	c.nextPart(t, name)
	c.joinNext(t, name)
	block(t, name)
	t.norm(name+"shared_head.norm", int64(c.Hidden), false)
	t.drop("a copy of the model's embedding or output head, which the multi-token prediction head shares",
		name+"embed_tokens.weight", name+"shared_head.head.weight")
}
