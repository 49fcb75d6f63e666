package arch

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/config"
)

// Fixed is a key of published configurations whose value the reference takes for granted: its code does not read it,
// and computes what these values say. Other values are refused.
type Fixed struct {
	Key    string
	Values []string // as JSON
	As     []string // names of the type that it is true of; nil = all
}

// isFixed reports whether a key is one whose other values are refused under all names of the type.
func (a Arch) isFixed(key string) bool {
	return slices.ContainsFunc(a.Fixed, func(f Fixed) bool { return f.Key == key && f.As == nil })
}

// checkFixed refuses other values of the fixed keys of the type, under the name that the configuration has for it.
func (a Arch) checkFixed(o config.Object, name string) {
	for _, f := range a.Fixed {
		if f.As != nil && !slices.Contains(f.As, name) || !o.Has(f.Key) {
			continue
		}
		var value bytes.Buffer
		if json.Compact(&value, o.Keys[f.Key]) != nil || !slices.Contains(f.Values, value.String()) {
			o.Fail(f.Key, "be "+strings.Join(f.Values, " or ")+", which is what models of this type compute")
		}
	}
}
