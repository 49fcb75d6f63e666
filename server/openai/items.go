package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/server/wire"
)

// input is the input of /v1/responses: a user's text, or a list of items.
type input struct {
	messages []chat.Message
	items    []int // index of the item that each message starts with
}

// inputItem is a message, a tool call, a tool result, or reasoning.
type inputItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Summary   []inputText     `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

type inputText struct {
	Text string `json:"text"`
}

func (in *input) UnmarshalJSON(b []byte) error {
	var text *string
	if json.Unmarshal(b, &text) == nil {
		if text != nil {
			in.add(0, chat.Message{Role: "user", Content: *text})
		}
		return nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(b, &items); err != nil {
		return fmt.Errorf("input must be a text or a list of items")
	}
	thought := ""
	for i, one := range items {
		var item inputItem
		err := json.Unmarshal(one, &item)
		if err == nil {
			err = in.read(i, item, &thought)
		}
		if err != nil {
			return fmt.Errorf("input[%d]: %w", i, err)
		}
	}
	return nil
}

func (in *input) add(item int, m chat.Message) {
	in.messages, in.items = append(in.messages, m), append(in.items, item)
}

// read adds an item. Reasoning becomes part of the message that follows. A call becomes part of the message before it,
// if that is the model's.
func (in *input) read(i int, item inputItem, thought *string) error {
	switch item.Type {
	case "message", "":
		m, err := message(item.Role, item.Content)
		if err != nil {
			return err
		}
		if m.Role == chat.Assistant {
			m.Reasoning, *thought = *thought, ""
		}
		in.add(i, m)
	case "reasoning":
		text, err := item.thought()
		if err != nil {
			return err
		}
		*thought += text
	case "function_call":
		if last := len(in.messages) - 1; last < 0 || in.messages[last].Role != chat.Assistant || *thought != "" {
			in.add(i, chat.Message{Role: chat.Assistant, Null: true, Reasoning: *thought})
			*thought = ""
		}
		m := &in.messages[len(in.messages)-1]
		m.ToolCalls = append(m.ToolCalls, chat.NewCall(item.CallID, item.Name, item.Arguments))
	case "function_call_output":
		m, err := message("tool", item.Output)
		if err != nil {
			return err
		}
		m.ToolCallID = item.CallID
		in.add(i, m)
	case "item_reference":
		return fmt.Errorf("items are not stored: send the item instead of a reference")
	default:
		return fmt.Errorf("item type %s is not supported", wire.Clip(item.Type))
	}
	return nil
}

// thought returns the text of a reasoning item. Our responses have it in content or encrypted_content. The fallback is
// the summary.
func (item inputItem) thought() (string, error) {
	var parts []inputText
	if len(item.Content) > 0 {
		if err := json.Unmarshal(item.Content, &parts); err != nil {
			return "", err
		}
	}
	if len(parts) == 0 && item.Encrypted != "" {
		return item.Encrypted, nil
	}
	if len(parts) == 0 {
		parts = item.Summary
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String(), nil
}

// message decodes a message's content.
func message(role string, content json.RawMessage) (m chat.Message, err error) {
	if content == nil {
		return m, fmt.Errorf("content is missing")
	}
	b, err := wire.Encode(map[string]any{"role": role, "content": content})
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	return m, err
}

// responseTools are tools in the form of the responses API, {"type": "function", "name": ...}. Tools that OpenAI runs
// are dropped, since clients such as Codex always send some. The response lists the remaining tools.
type responseTools struct {
	text  json.RawMessage
	tools []chat.Tool // in the form of chat completions
}

func (t *responseTools) UnmarshalJSON(b []byte) error {
	var list, kept []chat.Tool
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	for _, flat := range list {
		if flat.Value == nil {
			return fmt.Errorf("tools: must not be null")
		}
		if flat.Type() != "function" {
			continue
		}
		kept = append(kept, flat)
		t.tools = append(t.tools, flat.Nested())
	}
	var err error
	if len(kept) > 0 {
		t.text, err = wire.Encode(kept)
	}
	return err
}
