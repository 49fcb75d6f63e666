package pyjson

import (
	"fmt"
	"path"
	"slices"

	"github.com/ingotml/ingot/internal/limits"
)

// lists are the files that have a value for each token or tensor. Their readers have bounds of their own.
var lists = []string{
	"tokenizer.json", "vocab.json", "tekken.json", "added_tokens.json", "model.safetensors.index.json",
}

// MostBytes returns the largest size of a model's file of that name that is read as a whole.
func MostBytes(name string) int64 {
	if isConfiguration(name) {
		return limits.ModelJSON
	}
	return limits.ModelFile
}

func isConfiguration(name string) bool {
	return path.Ext(name) == ".json" && !slices.Contains(lists, path.Base(name))
}

// Bound returns an error if a file has more than its readers take: those of configurations make maps of them, which
// take many times the text. Import and load both use it. It accepts what is not JSON.
func Bound(name string, data []byte) error {
	if most := MostBytes(name); int64(len(data)) > most {
		return fmt.Errorf("more than %d MiB", most>>20)
	}
	if !isConfiguration(name) {
		return nil
	}
	var open []int // the values of each open object and list so far
	values := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if len(open) == maxDepth {
				return nil // no reader takes it
			}
			open = append(open, 1)
			values++
		case '}', ']':
			open = open[:max(len(open)-1, 0)]
		case ',':
			if values++; len(open) == 0 {
				continue
			}
			if open[len(open)-1]++; open[len(open)-1] > limits.JSONElements {
				return fmt.Errorf("more than %d values in one object or list", limits.JSONElements)
			}
		}
		if values > limits.JSONValues {
			return fmt.Errorf("more than %d values", limits.JSONValues)
		}
	}
	return nil
}

// maxDepth is the nesting that encoding/json reads.
const maxDepth = 10_000
