package params

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ingotml/ingot/chat"
)

// Every spelling of thinking is understood, and none stops a request.
func TestThinking(t *testing.T) {
	var list Thinking
	if json.Unmarshal([]byte(`[1]`), &list) == nil {
		t.Error("a list is accepted")
	}
	for in, want := range map[string]string{
		`null`: "- ", `""`: "- ", `"default"`: "- ", `"auto"`: "- ", `"something"`: "- ", `{}`: "- ",
		`true`: "on ", `false`: "off ", `"none"`: "off ", `"OFF"`: "off ", `0`: "off ", `"0"`: "off ", `-1`: "on ",
		`"adaptive"`: "on ", `"enabled"`: "on ", `1.0`: "on minimal 1", `8192`: "on medium 8192", `8192.7`: "on medium 8192",
		`99999`: "on xhigh 99999", `1e99`: "on xhigh 2147483647", `"2000"`: "on low 2000",
		`"minimal"`: "on minimal", `"low"`: "on low", `"Medium "`: "on medium", `"high"`: "on high", `"xhigh"`: "on xhigh",
		`"max"`: "on max", `"ultra"`: "on max", `"extra_high"`: "on xhigh",
		`{"effort":"high"}`: "on high", `{"effort":"none"}`: "off ", `{"effort":null}`: "- ", `{"enabled":true}`: "on ",
		`{"type":"enabled","budget_tokens":30000}`: "on high 30000", `{"type":"disabled","budget_tokens":30000}`: "off ",
		`{"type":"adaptive","display":"omitted"}`: "on ", `{"max_tokens":500,"exclude":true}`: "on minimal 500",
		`{"type":{"type":"enabled"}}`: "- ", `{"enabled":false,"effort":"high"}`: "off ", `{"level":"low"}`: "on low",
	} {
		var got Thinking
		if err := json.Unmarshal([]byte(in), &got); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		var r chat.Request
		got.Set(&r)
		text := "-"
		if r.Think != nil {
			text = map[bool]string{true: "on", false: "off"}[*r.Think]
		}
		text += " " + r.ThinkLevel
		if r.ThinkBudget != nil {
			text += fmt.Sprintf(" %d", *r.ThinkBudget)
		}
		if text != want {
			t.Errorf("%s: got %q, want %q", in, text, want)
		}
	}
}
