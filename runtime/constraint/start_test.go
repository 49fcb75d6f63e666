package constraint

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/tokenizer"
)

// A token is cut exactly after the text that starts a format if the format does not allow the rest, with tokenizers
// that can encode the first part by itself and with those that put a space before it.
func TestInstead(t *testing.T) {
	for _, dir := range []string{"../../testdata/tokenizers/llama2", "../../testdata/models/demo"} {
		data, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.Load(data, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := New(tok, nil, int64(tok.Size()))
		cuts, longest := 0, 0
		for id := int32(0); id < int32(tok.Size()) && cuts < 200; id++ {
			b, _ := tok.Bytes(id)
			if len(b) < 2 || len(b) > 8 || b[0] >= 0x80 || b[len(b)-1] >= 0x80 {
				continue
			}
			at := 1 + int(id)%(len(b)-1)
			rest := regexp.QuoteMeta(string(b[at:]))
			for _, source := range []string{rest + "x", "x" + rest} {
				c, err := f.Constrain(t.Context(), runtime.Request{Format: runtime.Format{Kind: runtime.FormatRegex, Source: source,
					After: string(b[:at])}}, 100)
				if err != nil {
					t.Fatal(err)
				}
				ids := c.Instead(id)
				text := ""
				for i, id := range ids {
					one, _ := tok.Bytes(id)
					text += string(one)
					if err := c.Accept(id, 50-i); err != nil {
						t.Fatal(err)
					}
				}
				if source[0] == 'x' && b[at] != 'x' {
					if cuts++; text != string(b[:at]) {
						t.Errorf("%s: %q instead of %q, want %q", dir, text, b, b[:at])
					}
					longest = max(longest, len(ids))
				} else if ids != nil || c.Accept(id, 50) != nil {
					t.Errorf("%s: %q instead of %q, which the format allows", dir, text, b)
				}
			}
		}
		if cuts < 100 {
			t.Errorf("%s: only %d tokens were cut, into up to %d", dir, cuts, longest)
		}
	}
	var none *Constraint
	if none.Instead(1) != nil {
		t.Error("tokens instead of one that nothing constrains")
	}
}
