package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/chattest"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/server/servertest"
)

// object is a JSON object.
type object = map[string]any

// bodiesOf returns a conversation as the body of a request of each API, by path. The tool is in OpenAI's form.
func bodiesOf(t *testing.T, model string, c chattest.Conversation, tools bool) map[string]object {
	t.Helper()
	var list []chat.Message
	if err := json.Unmarshal([]byte(c.Messages), &list); err != nil {
		t.Fatal(err)
	}
	open := object{"model": model, "max_tokens": 1, "messages": json.RawMessage(c.Messages)}
	ollama := object{"model": model, "stream": false, "options": object{"num_predict": 1},
		"messages": ollamaMessages(list)}
	responses := object{"model": model, "max_output_tokens": 1, "input": inputItems(list)}
	anthropic := object{"model": model, "max_tokens": 1, "messages": anthropicMessages(list)}
	if tools {
		var tool struct{ Function object }
		if err := json.Unmarshal([]byte(chattest.Tool), &tool); err != nil {
			t.Fatal(err)
		}
		f := tool.Function
		open["tools"] = []any{json.RawMessage(chattest.Tool)}
		ollama["tools"] = open["tools"]
		responses["tools"] = []object{{"type": "function", "name": f["name"], "parameters": f["parameters"]}}
		anthropic["tools"] = []object{{"name": f["name"], "input_schema": f["parameters"]}}
	}
	return map[string]object{
		"/v1/chat/completions": open, "/api/chat": ollama, "/v1/responses": responses, "/v1/messages": anthropic,
	}
}

// given returns the arguments of a call as a client has them: an object, or the text that it cannot decode.
func given(c chat.ToolCall) any {
	var o object
	if json.Unmarshal([]byte(c.Text), &o) == nil {
		return o
	}
	return c.Arguments
}

func ollamaMessages(list []chat.Message) (out []object) {
	for _, m := range list {
		o := object{"role": m.Role, "content": m.Content}
		var calls []object
		for _, c := range m.ToolCalls {
			calls = append(calls, object{"id": c.ID, "function": object{"name": c.Name, "arguments": given(c)}})
		}
		if calls != nil {
			o["tool_calls"] = calls
		}
		if m.Role == "tool" {
			o["tool_call_id"] = m.ToolCallID
		}
		out = append(out, o)
	}
	return out
}

func inputItems(list []chat.Message) (out []object) {
	for _, m := range list {
		switch {
		case m.Role == "tool":
			out = append(out, object{"type": "function_call_output", "call_id": m.ToolCallID, "output": m.Content})
			continue
		case m.Content != "" || len(m.ToolCalls) == 0:
			out = append(out, object{"role": m.Role, "content": m.Content})
		}
		for _, c := range m.ToolCalls {
			text, _ := c.Arguments.(string)
			if c.Text != "" {
				text = c.Text
			}
			out = append(out, object{"type": "function_call", "call_id": c.ID, "name": c.Name, "arguments": text})
		}
	}
	return out
}

func anthropicMessages(list []chat.Message) (out []object) {
	for _, m := range list {
		if m.Role == "tool" {
			out = append(out, object{"role": "user", "content": []object{
				{"type": "tool_result", "tool_use_id": m.ToolCallID, "content": m.Content},
			}})
			continue
		}
		var blocks []object
		if m.Content != "" {
			blocks = append(blocks, object{"type": "text", "text": m.Content})
		}
		for _, c := range m.ToolCalls {
			blocks = append(blocks, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": given(c)})
		}
		if blocks == nil {
			blocks = []object{}
		}
		out = append(out, object{"role": m.Role, "content": blocks})
	}
	return out
}

// Every conversation that clients send has a response on every API with every chat template. The short form asks one
// API for each of them, in turn. Package fit has the test of what the prompts show.
func TestEveryConversationOnEveryAPI(t *testing.T) {
	f := serve(t, nil)
	for name, text := range chattest.Texts(t, "..") {
		model := strings.NewReplacer("/", "-", " ", "-").Replace(strings.ToLower(name))
		servertest.Create(t, f.Options().Store, model, modelfile.Command{Name: modelfile.Template, Value: text})
		m, err := f.Find(t.Context(), model)
		if err != nil {
			t.Fatal(err)
		}
		takesTools := slices.Contains(m.Entry.Image.Config.Capabilities, manifest.CapTools)
		bare, _ := f.Ask(t, "POST", "/api/chat", fmt.Sprintf(
			`{"model":%q,"stream":false,"messages":[{"role":"user","content":"x"}]}`, model))
		if bare != 200 {
			t.Logf("%s requires variables that no conversation has", name)
			continue
		}
		for i, c := range chattest.Conversations() {
			bodies := bodiesOf(t, model, c, c.Tools && takesTools)
			paths := slices.Sorted(maps.Keys(bodies))
			if !runtest.Long() {
				turn := (i + len(name)) % len(paths)
				paths = paths[turn : turn+1]
			}
			for _, path := range paths {
				body := bodies[path]
				b, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				status, response := f.Ask(t, "POST", path, string(b))
				long := strings.Contains(response, "context length is") || strings.Contains(response, "prompt is too long")
				if status != 200 && !long { // the model's context is short
					t.Errorf("%s, %s, %s: %d %s", name, c.Name, path, status, response)
				}
			}
		}
	}
}
