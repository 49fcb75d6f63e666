package chat

import (
	"fmt"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits"
)

// CheckTools checks the number, size and nesting of tools against the limits. Its error wraps ErrTools.
func CheckTools(tools []Tool) error {
	if err := CheckToolCount(len(tools)); err != nil {
		return err
	}
	size := int64(0)
	for i, t := range tools {
		if tooDeep(t.Value, limits.ToolNesting) {
			return fmt.Errorf("%w: tool %d is nested more than %d deep", ErrTools, i, limits.ToolNesting)
		}
		if size += jinja.Size(t.Value); size > limits.ToolsSize {
			return fmt.Errorf("%w: more than %d bytes of tools", ErrTools, limits.ToolsSize)
		}
	}
	return nil
}

// CheckToolCount checks the number of tools alone, for readers whose work grows with it.
func CheckToolCount(n int) error {
	if n > limits.Tools {
		return fmt.Errorf("%w: %d tools; at most %d", ErrTools, n, limits.Tools)
	}
	return nil
}

// tooDeep reports whether containers in v, including v itself, nest more than levels deep.
func tooDeep(v jinja.Value, levels int) bool {
	deep := false
	switch v := v.(type) {
	case *jinja.Dict:
		if deep = levels == 0; !deep && v != nil {
			v.Each(func(_, x jinja.Value) bool {
				deep = tooDeep(x, levels-1)
				return !deep
			})
		}
	case *jinja.List:
		deep = levels == 0
		for i := 0; !deep && i < len(v.Items); i++ {
			deep = tooDeep(v.Items[i], levels-1)
		}
	}
	return deep
}
