package grammar

import (
	"errors"
	"strings"
	"testing"
)

// zodHost is the pattern of Zod's hostname: its labels and its length together have too many states.
const zodHost = `"^(?=.{1,253}\\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?` +
	`(?:\\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\\.?$"`

// A pattern of too many states holds for shorter texts, and never where texts are excluded.
func TestShortPatterns(t *testing.T) {
	label := strings.Repeat("a", 40)
	for _, rest := range []string{``, `, "format": "hostname"`, `, "maxLength": 60`} {
		g := compileSchema(t, `{"type": "string", "pattern": `+zodHost+rest+`}`)
		for text, want := range map[string]bool{`"a.example.com"`: true, `"-a.com"`: false, `"a..b"`: false, `""`: false,
			`"` + label + `"`: true, `"` + label + label + `"`: false} {
			if got, err := g.AcceptsJSON([]byte(text)); got != want || err != nil {
				t.Errorf("%s accepts %s: %v, %v", rest, text, got, err)
			}
		}
	}
	// The alternatives share a text that is too long for the first.
	long := strings.Repeat("a", 60) + "." + strings.Repeat("b", 60)
	overlap := `{"oneOf": [{"type": "string", "pattern": ` + zodHost + `}, {"const": "` + long + `"}]}`
	if _, err := CompileSchema(t.Context(), []byte(overlap)); !errors.Is(err, ErrLimit) {
		t.Errorf("both alternatives hold for %s: %v", long, err)
	}
}
