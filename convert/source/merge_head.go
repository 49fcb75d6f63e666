package source

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/adapter"
)

// settleHead returns the tensors that an adapter replaces. If it changes the output head or the embedding of a model
// that ties them, PEFT's model has two matrices from then on, because it trains copies of modules and adds LoRA to one
// use of the matrix only. settleHead then gives the model a head of its own, unless the adapter says that the two were
// trained as one, or has both and they are equal.
func (src *Source) settleHead(a *adapter.Adapter) ([]adapter.Whole, error) {
	n := src.names()
	if !n.table.Tied() {
		return a.Whole, nil
	}
	of := func(name string) string { own, _ := n.table.Canonical(name); return own }
	find := func(name string) int {
		return slices.IndexFunc(a.Whole, func(w adapter.Whole) bool { return of(w.Name) == name })
	}
	lora := slices.IndexFunc(a.Deltas, func(d adapter.Delta) bool { return of(d.Module+".weight") == table.HeadName })
	head, embedding := find(table.HeadName), find(n.table.EmbeddingName())
	if lora < 0 && head < 0 && embedding < 0 {
		return a.Whole, nil
	}
	if lora < 0 && (head < 0 || embedding < 0) && a.Tied {
		saved := slices.Clone(a.Whole)
		saved[max(head, embedding)].Name = n.table.EmbeddingName()
		return saved, nil
	}
	if head >= 0 && embedding >= 0 && lora < 0 {
		x, y := a.Whole[head], a.Whole[embedding]
		same, err := equal(context.Background(), fileTensor(x.Folder, x.Source), fileTensor(y.Folder, y.Source))
		if err != nil {
			return nil, err
		}
		if same {
			return slices.Delete(slices.Clone(a.Whole), head, head+1), nil
		}
	}
	var by string
	switch {
	case lora >= 0:
		by = a.Deltas[lora].A.Name
	default:
		by = a.Whole[max(head, embedding)].Source.Name
	}
	return a.Whole, src.untie(n, a, by)
}

// untie gives the model a head of its own: a copy of the embedding. by is the adapter's tensor that needs it.
func (src *Source) untie(n names, a *adapter.Adapter, by string) error {
	wrong := func(what string) error {
		return fmt.Errorf("%s: tensor %s: %w: %s ties the output head to the embedding (tie_word_embeddings), and %s; "+
			"train the adapter without lm_head and embed_tokens, or merge it with merge_and_unload of the Python package peft "+
			"and save the model with tie_word_embeddings = false", a.Path(), by, ErrSource, src.pathOf(ConfigName), what)
	}
	at, ok := n.at[n.table.EmbeddingName()]
	if !ok {
		return wrong("the checkpoint has the embedding under the head's name only")
	}
	i := slices.IndexFunc(src.Files, func(f File) bool { return f.Name == ConfigName })
	config, model, err := arch.Untie(src.Files[i].Data)
	if err != nil {
		return src.Located(err)
	}
	if model.Table().Names().Tied() {
		return wrong("models of this type always do")
	}
	src.Model, src.Files = model, slices.Clone(src.Files)
	src.Files[i].Data, src.Files[i].Size = config, int64(len(config))
	embedding := src.tensors[at]
	if _, ok := n.at[table.HeadName]; !ok {
		head := derived(embedding, table.HeadName, "a copy of the embedding, which an adapter separates from the head")
		src.tensors = append(slices.Clone(src.tensors), head)
		slices.SortFunc(src.tensors, func(a, b Tensor) int { return cmp.Compare(a.Name, b.Name) })
	}
	src.notes = append(slices.Clone(src.notes), fmt.Sprintf("%s ties the output head to %s, and the adapter changes one "+
		"without the other: the image has a head of its own, of %d bytes in the checkpoint's type, as PEFT's model does",
		ConfigName, embedding.Name, embedding.Size()))
	return nil
}
