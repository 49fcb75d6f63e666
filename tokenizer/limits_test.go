package tokenizer

import (
	"strings"
	"testing"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/pattern"
)

// At each limit of a tokenizer's file reading succeeds; beyond it fails.
func TestTokenizerLimits(t *testing.T) {
	rep := strings.Repeat
	value := func(text string) error {
		r, err := jsonfile.NewReader("tokenizer.json", []byte(text))
		if err == nil {
			_, err = r.Value()
		}
		return err
	}
	compiled := func(text string) error {
		_, err := pattern.Translate(text)
		return err
	}
	one, err := pattern.Translate(`\p{L}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		at         int
		read       func(string) error
		make       func(n int) string
	}{
		{"nesting", "nested more", limits.TokenizerNesting, value, func(n int) string { return rep("[", n) + rep("]", n) }},
		{"values", "values", limits.TokenizerValues - 1, value, func(n int) string { return "[" + rep("0,", n-1) + "0]" }},
		{"groups", "nested more", limits.TokenizerPatternNesting - 1, compiled, func(n int) string {
			return rep("(", n) + "a" + rep(")", n)
		}},
		{"size", "classes", limits.TokenizerPattern / len(one), compiled, func(n int) string { return rep(`\p{L}`, n) }},
	} {
		if err := c.read(c.make(c.at)); err != nil {
			t.Errorf("%s: %d: %v", c.name, c.at, err)
		}
		over := c.at + 1
		if c.name == "size" {
			over++ // the size is only checked before the next part
		}
		if err := c.read(c.make(over)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d: got %v, want %q", c.name, over, err, c.want)
		}
	}
}
