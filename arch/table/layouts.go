package table

import (
	"fmt"
	"strconv"
	"strings"
)

// Layout is a layout or prefix that the names in a checkpoint revealed.
type Layout struct {
	What    string // for messages: "text under language_model.model.", "model.layers.*.mlp.experts: stacked"
	From    string // the first tensor with it
	Tensors int    // number of tensors with it
}

// recognized lists the prefix of each part and the layout of each group.
func (c *checker) recognized() []Layout {
	var out []Layout
	index := map[string]int{} // into out, by what
	note := func(what string, m Matched) {
		i, ok := index[what]
		if !ok {
			i = len(out)
			index[what] = i
			out = append(out, Layout{What: what, From: m.Sources[0]})
		}
		out[i].Tensors += len(m.Sources)
	}
	for i, p := range c.table.Parts {
		if c.absent[i] {
			continue
		}
		for _, m := range c.match.Tensors {
			if c.table.part(m.Spec.Name) == i && len(m.Sources) > 0 {
				note(fmt.Sprintf("%s under %q", p.Name, c.prefixes[i]), m)
			}
		}
	}
	for _, m := range c.match.Tensors {
		if g := m.Spec.Group; g != "" && len(m.Sources) > 0 {
			note(anyNumber(g)+": "+c.layouts[g].name, m)
		}
	}
	return out
}

// anyNumber replaces the numbers in a name by "*".
func anyNumber(name string) string {
	parts := strings.Split(name, ".")
	for i, p := range parts {
		if _, err := strconv.ParseUint(p, 10, 32); err == nil {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, ".")
}
