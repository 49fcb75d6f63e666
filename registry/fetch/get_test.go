package fetch

import (
	"testing"

	"github.com/ingotml/ingot/manifest/store/ingest"
)

func TestContentRange(t *testing.T) {
	for value, want := range map[string]struct {
		r     ingest.Range
		total int64
		ok    bool
	}{
		"bytes 0-0/1":     {ingest.Range{Start: 0, End: 1}, 1, true},
		"bytes 5-9/*":     {ingest.Range{Start: 5, End: 10}, -1, true},
		" Bytes 5-9/100 ": {ingest.Range{Start: 5, End: 10}, 100, true},
		"bytes */100":     {},
		"bytes 9-5/100":   {},
		"bytes -5/100":    {},
		"items 0-1/2":     {},
		"":                {},
		"bytes 0-1/x":     {},
		"bytes 0-1":       {},
		"bytes 0-9223372036854775807/9223372036854775807": {},
	} {
		r, total, ok := contentRange(value)
		if ok != want.ok || ok && (r != want.r || total != want.total) {
			t.Errorf("%q: %v of %d, %v", value, r, total, ok)
		}
	}
}
