package source

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/adapter"
	"github.com/ingotml/ingot/convert/internal/encode"
	"github.com/ingotml/ingot/safetensors"
)

// names finds the source's tensors by the names that any class of the model gives them.
type names struct {
	table table.Names
	at    map[string]int // in src.tensors, by the table's names
}

func (src *Source) names() names {
	n := names{src.Model.Table().Names(), map[string]int{}}
	for i, w := range src.tensors {
		name, _ := n.table.Canonical(w.Name)
		if _, twice := n.at[name]; !twice || name == w.Name {
			n.at[name] = i
		}
	}
	return n
}

// drops returns why a tensor belongs to a part of the model that is not imported.
func (n names) drops(name string) (table.Drop, bool) {
	if _, known := n.table.Canonical(name); known {
		return table.Drop{}, false
	}
	return n.table.Drops(name)
}

// target finds the checkpoint's tensor that an adapter changes. The prefixes of its name are those of the model's class
// in training, which may be another class than the checkpoint's.
func (src *Source) target(n names, a *adapter.Adapter, s safetensors.Source, name string) (int, error) {
	own, known := n.table.Canonical(name)
	if i, ok := n.at[own]; ok {
		return i, nil
	}
	if known {
		return 0, fmt.Errorf("%s: tensor %s: %w: %s has %s only as a part of another tensor; merge it with "+
			"merge_and_unload of the Python package peft", a.Path(), s.Name, ErrSource, src.From, encode.Clip(own))
	}
	has := ""
	if near := src.nearestName(own); near != "" {
		has = "; it has " + encode.Clip(near)
	}
	return 0, fmt.Errorf("%s: tensor %s: %w: %s has no tensor %s to change%s; it is an adapter of another model",
		a.Path(), s.Name, ErrSource, src.From, encode.Clip(name), has)
}

// nearestName returns the tensor with the most parts at the end of its name in common with name, numbers aside.
func (src *Source) nearestName(name string) (nearest string) {
	want := strings.Split(name, ".")
	most := 0
	for _, w := range src.tensors {
		have := strings.Split(w.Name, ".")
		n := 0
		for n < min(len(have), len(want)) && alike(have[len(have)-1-n], want[len(want)-1-n]) {
			n++
		}
		if n > most {
			nearest, most = w.Name, n
		}
	}
	return nearest
}

// alike reports whether two parts of names are equal or both numbers.
func alike(a, b string) bool {
	number := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return a == b || number(a) && number(b)
}
