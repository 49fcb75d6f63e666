package table

import (
	"slices"
	"strings"
)

// Names finds the names of a table, whatever prefix and wrappers a publication puts around them. A model class names a
// tensor otherwise than the checkpoint does if one of them wraps the text model.
type Names struct {
	table     Table
	spellings *strings.Replacer
	known     map[string]bool // names of tensors, their aliases and the sources of their forms; "*" is an expert
}

// Names returns the table's names.
func (t Table) Names() Names {
	n := Names{table: t, spellings: strings.NewReplacer(t.Spellings...), known: map[string]bool{}}
	for _, s := range t.Specs {
		for _, name := range AllNames(s) {
			n.known[name] = true
		}
	}
	return n
}

// Canonical returns the table's name for a published one: that of a tensor, or of what one is made from in another
// layout. The name of a head is lm_head.weight, whether the table has a head or ties it to the embedding.
func (n Names) Canonical(name string) (string, bool) {
	name = n.spellings.Replace(unwrapped(name))
	if name == HeadName || slices.Contains(HeadAliases, name) {
		return HeadName, true
	}
	for i, p := range n.table.Parts {
		for _, prefix := range append([]string{p.Prefix}, p.Accept...) {
			rest, ok := strings.CutPrefix(name, prefix)
			if own := p.Prefix + rest; ok && n.table.part(own) == i && n.knows(own) {
				return own, true
			}
		}
	}
	return name, n.knows(name)
}

func (n Names) knows(name string) bool {
	if n.known[name] {
		return true
	}
	for pattern := range expertPatterns(name) {
		if n.known[pattern] {
			return true
		}
	}
	return false
}

// Tied reports whether the table has no output head because the embedding is used instead.
func (n Names) Tied() bool { return !slices.ContainsFunc(n.table.Specs, Spec.IsHead) }

// EmbeddingName returns the name of the embedding of tokens.
func (n Names) EmbeddingName() string { return n.table.Specs[0].Name }

// Drops returns why the table leaves out the tensor of a published name.
func (n Names) Drops(name string) (Drop, bool) {
	name = n.spellings.Replace(unwrapped(name))
	if d, ok := n.table.droppable(name); ok {
		return d, true
	}
	for _, p := range n.table.Parts {
		for _, prefix := range append([]string{p.Prefix}, p.Accept...) {
			rest, ok := strings.CutPrefix(name, prefix)
			if d, drops := n.table.droppable(p.Prefix + rest); ok && drops {
				return d, true
			}
		}
	}
	return Drop{}, false
}

// expertPatterns yields every form of a name with one of its numbers replaced by "*".
func expertPatterns(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for at := 0; at < len(name); {
			end := at + strings.IndexByte(name[at:]+".", '.')
			number := name[at:end]
			if number != "" && strings.Trim(number, "0123456789") == "" && !yield(name[:at]+"*"+name[end:]) {
				return
			}
			at = end + 1
		}
	}
}
