package chat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/internal/limits"
)

// Every limit on tools holds.
func TestToolLimits(t *testing.T) {
	tool := func(text string) chat.Tool {
		var one chat.Tool
		if err := one.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return one
	}
	list := make([]chat.Tool, limits.Tools+1)
	for i := range list {
		list[i] = tool(`{"type":"function"}`)
	}
	long := func(n int) []chat.Tool {
		return []chat.Tool{tool(fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", n))), tool(`{}`)}
	}
	const values = 4 * 48 // overhead of two objects, a key and a string beside their bytes
	deep := func(n int) []chat.Tool {
		return []chat.Tool{tool(`{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`)}
	}
	for name, c := range map[string]struct{ allowed, refused []chat.Tool }{
		"number":  {list[:limits.Tools], list},
		"size":    {long(limits.ToolsSize - values - len("a")), long(limits.ToolsSize - values)},
		"nesting": {deep(limits.ToolNesting), deep(limits.ToolNesting + 1)},
	} {
		if err := chat.CheckTools(c.allowed); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := chat.CheckTools(c.refused); !errors.Is(err, chat.ErrTools) {
			t.Errorf("%s: got %v, want ErrTools", name, err)
		}
	}
}
