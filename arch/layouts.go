package arch

import (
	"fmt"
	"strconv"
	"strings"
)

// Layout is one way in which a checkpoint is published, as its tensors' names showed.
type Layout struct {
	What    string // for people: "text under language_model.model.", "model.layers.*.mlp.experts: stacked"
	From    string // the first tensor that shows it
	Tensors int    // of the checkpoint that are so
}

// recognized lists the prefixes of parts and the layouts of groups.
func (c *checker) recognized() []Layout {
	var out []Layout
	index := map[string]int{} // by what
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

// anyNumber puts "*" in place of the numbers in a name.
func anyNumber(name string) string {
	parts := strings.Split(name, ".")
	for i, p := range parts {
		if _, err := strconv.ParseUint(p, 10, 32); err == nil {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, ".")
}
