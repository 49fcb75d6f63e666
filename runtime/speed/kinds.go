package speed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/table"
)

// kind is the layers of a model that take the same time.
type kind struct {
	layers []int
	bytes  int64 // of weights that one of them reads for a token
}

// kindsOf divides the layers of a model by their tensors, types and states. last is the index of the last layer's kind.
// active is the number of bytes of weights that a token reads in all layers.
func kindsOf(m arch.Model, tensors []Tensor, layers int) (kinds []kind, last int, active int64) {
	tab := m.Table()
	specs := map[string]table.Spec{}
	for _, s := range tab.Specs {
		specs[s.Name] = s
	}
	of := make([][]string, layers)
	bytes := make([]int64, layers)
	for _, t := range tensors {
		pattern, i := table.SplitLayer(t.Name)
		if part := tab.PartOf(t.Name); i < 0 || i >= layers || part != "" && part != "text" {
			continue // such as a picture encoder's
		}
		text := pattern + " " + t.Type.String()
		for _, a := range t.Arrays {
			text += fmt.Sprint(" ", a.DType, a.Shape)
		}
		of[i] = append(of[i], text)
		n := int64(float64(t.Bytes()) * arch.ReadShare(m, specs[t.Name]))
		bytes[i] += n
		active += n
	}
	byText := map[string]int{}
	states := m.State()
	for i, texts := range of {
		slices.Sort(texts)
		key := strings.Join(texts, "\n")
		if len(states) == layers {
			key += fmt.Sprint("\n", states[i])
		}
		k, known := byText[key]
		if !known {
			k = len(kinds)
			byText[key] = k
			kinds = append(kinds, kind{bytes: bytes[i]})
		}
		kinds[k].layers = append(kinds[k].layers, i)
		last = k
	}
	return kinds, last, active
}
