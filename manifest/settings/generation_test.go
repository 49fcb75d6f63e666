package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGenerationParameters(t *testing.T) {
	for _, c := range []struct {
		text string
		want map[string]any
		note string
	}{
		{`{"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0, "repetition_penalty": 1.05, ` +
			`"eos_token_id": [1, 2], "do_sample": true}`,
			map[string]any{"temperature": 0.6, "top_p": 0.95, "top_k": int64(20), "min_p": 0.0, "repeat_penalty": 1.05}, ""},
		{`{"do_sample": false, "temperature": 0.6}`, map[string]any{"temperature": 0.0}, ""},
		{`{"top_k": 2.5, "top_p": "x", "temperature": null}`, map[string]any{}, "top_k = 2.5 is invalid"},
		{`{}`, map[string]any{}, ""},
		{`[]`, map[string]any{}, "not a JSON object"},
	} {
		got, notes := GenerationParameters([]byte(c.text))
		if d := cmp.Diff(c.want, got); d != "" || !strings.Contains(strings.Join(notes, "\n"), c.note) ||
			(c.note == "") != (len(notes) == 0) {
			t.Errorf("%s: notes %q\n%s", c.text, notes, d)
		}
	}
}
