package constraint

import (
	"testing"

	"github.com/ingotml/ingot/runtime"
)

// A schema that one owner has compiled is compiled again for another one, and once for each.
func TestFormatsOfOwners(t *testing.T) {
	f := New(nil, nil, 0)
	of := runtime.Format{Kind: runtime.FormatSchema, Source: `{"const":"a secret"}`}
	compiled := map[any]bool{}
	for _, owner := range []string{"a", "b", "", "a", "b", ""} {
		g, err := f.grammar(t.Context(), owner, of)
		if err != nil {
			t.Fatal(err)
		}
		compiled[g] = true
	}
	if len(compiled) != 3 {
		t.Errorf("%d grammars for three owners", len(compiled))
	}
}
