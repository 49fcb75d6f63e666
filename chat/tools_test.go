package chat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/limits"
)

// Every bound on tools is reached.
func TestToolLimits(t *testing.T) {
	tool := func(text string) chat.Tool {
		var one chat.Tool
		if err := one.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return one
	}
	few := make([]chat.Tool, limits.Tools+1)
	for i := range few {
		few[i] = tool(`{"type":"function"}`)
	}
	long := func(n int) []chat.Tool {
		return []chat.Tool{tool(fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", n))), tool(`{}`)}
	}
	const values = 4 * 48 // what its two objects, its key and its text take beside their bytes
	deep := func(n int) []chat.Tool {
		return []chat.Tool{tool(`{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`)}
	}
	for name, c := range map[string]struct{ most, more []chat.Tool }{
		"number":  {few[:limits.Tools], few},
		"size":    {long(limits.ToolsSize - values - len("a")), long(limits.ToolsSize - values)},
		"nesting": {deep(limits.ToolNesting), deep(limits.ToolNesting + 1)},
	} {
		if err := chat.CheckTools(c.most); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := chat.CheckTools(c.more); !errors.Is(err, chat.ErrTools) {
			t.Errorf("%s: got %v, want ErrTools", name, err)
		}
	}
}
