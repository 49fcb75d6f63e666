package tools

import (
	"encoding/json"

	"github.com/ingotml/ingot/chat/parse"
)

// Call is a call of the model as the client knows it.
type Call struct {
	Kind            Kind
	Namespace, Name string
	Arguments       json.RawMessage // of a function or a search: an object
	Input           string          // of a custom tool
}

// Call translates a call of the model.
func (s *Set) Call(c parse.ToolCall) Call {
	out := Call{Kind: Function, Name: c.Name, Arguments: c.Arguments}
	for _, t := range s.tools {
		if t.Offered != c.Name {
			continue
		}
		out.Kind, out.Namespace, out.Name = t.Kind, t.Namespace, t.Name
		if t.Kind == Custom {
			out.Input, out.Arguments = Input(c.Arguments), nil
		}
		break
	}
	return out
}
