package arch

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// allGGUF yields the mappings of all types.
func allGGUF() iter.Seq[gguf.Map] {
	return func(yield func(gguf.Map) bool) {
		for _, a := range known {
			for _, g := range a.GGUF {
				if !yield(g) {
					return
				}
			}
		}
	}
}

// GGUFArchitectures lists the values of general.architecture that can be imported.
func GGUFArchitectures() []string {
	var list []string
	for g := range allGGUF() {
		list = append(list, g.Architecture)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// DetectGGUF finds the mapping of a file by its architecture.
func DetectGGUF(f gguf.File) (gguf.Map, error) {
	g, name, err := gguf.Find(f, allGGUF())
	switch {
	case g != nil:
		return *g, err
	case err != nil:
		return gguf.Map{}, err
	}
	return gguf.Map{}, fmt.Errorf("general.architecture %q: %w (%s)", clip.Line(name, config.MaxQuoted),
		ErrUnknownArchitecture,
		suggestions(name, GGUFArchitectures(), "docs/gguf.md"))
}

// ParseGGUF reads a config.json that [gguf.Map.MakeConfig] made. Errors name the keys of the file.
func ParseGGUF(g gguf.Map, config []byte) (Model, error) {
	m, err := Detect(config)
	if err != nil {
		return nil, g.Explain(err)
	}
	return m, nil
}

// CheckGGUF imports what a file of a model would say, and compares: a file that means another model is an error
// wrapping [gguf.ErrMetadata]. lost are differences that leave contexts up to a length the same, for users.
func CheckGGUF(g gguf.Map, m Model, f gguf.File) (lost []string, err error) {
	config, err := g.MakeConfig(f)
	if err != nil {
		return nil, err
	}
	back, err := Detect(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", gguf.ErrMetadata, err)
	}
	return g.Compare(m, back)
}

// WritableGGUF lists the model types that can be written.
func WritableGGUF() []string {
	var list []string
	for _, a := range known {
		if slices.ContainsFunc(a.GGUF, func(g gguf.Map) bool { return !g.ImportOnly }) {
			list = append(list, a.ModelType)
		}
	}
	return list
}

// GGUFOf returns how a model is written as a GGUF file, and what its file says. [CheckGGUF] tells whether that is all
// of it.
func GGUFOf(m Model) (gguf.Map, gguf.Header, error) {
	for _, a := range known {
		if a.ModelType != m.Facts().ModelType || len(a.GGUF) == 0 {
			continue
		}
		for _, g := range a.GGUF {
			if !g.ImportOnly && (g.For == nil || g.For(m)) {
				h, err := g.Header(m)
				return g, h, err
			}
		}
	}
	return gguf.Map{}, gguf.Header{}, fmt.Errorf("%w: models of class %s cannot be written as GGUF (possible: %s)",
		gguf.ErrMetadata, m.Facts().Architecture, strings.Join(WritableGGUF(), ", "))
}
