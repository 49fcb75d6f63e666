package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server/servertest"
)

const (
	search = `{"type":"function","name":"search","description":"Finds notes.","strict":false,"defer_loading":true,` +
		`"parameters":{"type":"object"}}`
	notes = `{"type":"namespace","name":"mcp__notes","description":"Tools in the mcp__notes namespace.",` +
		`"tools":[` + search + `]}`
	patch = `{"type":"custom","name":"apply_patch","description":"Edits files.","format":{"type":"grammar",` +
		`"syntax":"lark","definition":"start: \"a\""}}`
)

func list(t *testing.T, text string) List { return servertest.Decode[List](t, text) }

// offered are the names of the functions that the model sees.
func offered(s *Set) (names []string) {
	for _, t := range s.tools {
		names = append(names, t.Offered)
	}
	return names
}

func TestOfferedNames(t *testing.T) {
	long := strings.Repeat("n", 70)
	for text, want := range map[string][]string{
		`[` + search + `]`:                              {"search"},
		`[` + notes + `,` + search + `]`:                {"mcp__notes__search", "search"},
		`[` + notes + `,{"name":"mcp__notes__search"}]`: {"mcp__notes__search_2", "mcp__notes__search"},
		`[` + notes + `,` + notes + `]`:                 {"mcp__notes__search", "mcp__notes__search_2"},
		`[{"type":"namespace","name":"a b/é__","tools":[{"type":"custom","name":"c.d"}]}]`: {"a_b____c_d"},
		`[{"type":"namespace","name":"` + long + `","tools":[{"name":"a"},{"name":"b"}]}]`: {
			Joined(long, "a"), Joined(long, "b"),
		},
		`[{"name":"` + long + `"},{"type":"custom","name":"apply patch"},{"type":"function","function":{"name":"x y"}}]`: {
			long, "apply_patch", "x y",
		},
		`[{"type":"tool_search","execution":"client","parameters":{}},{"type":"tool_search"}]`:        {"tool_search"},
		`[{"type":"web_search"},{"type":"mcp","server_label":"x"},{"type":"local_shell"},{"type":7}]`: nil,
	} {
		s, err := ReadResponses(t.Context(), list(t, text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := offered(s)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		for _, name := range got {
			c := s.Call(parse.ToolCall{Name: name, Arguments: json.RawMessage(`{}`)})
			if s.OfferedName(c.Namespace, c.Name) == "" {
				t.Errorf("%s: %s has no way back", text, name)
			}
			if len(name) > longest && name != long {
				t.Errorf("%s is too long", name)
			}
		}
	}
	if Joined(long, "a") == Joined(long, "b") {
		t.Error("two long names are equal")
	}
}

func TestCalls(t *testing.T) {
	text := `[` + notes + `,` + patch + `,{"type":"namespace","name":"x","tools":[` + patch + `]},` + search + `]`
	s, err := ReadResponses(t.Context(), list(t, text),
		Added{list(t, `[{"type":"namespace","name":"later","tools":[{"name":"f"}]}]`), "input[1].tools"})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Listed()) != 4 {
		t.Errorf("%d tools are listed", len(s.Listed()))
	}
	for _, c := range []struct {
		name, arguments string
		want            Call
	}{
		{"mcp__notes__search", `{"q":1}`, Call{Function, "mcp__notes", "search", json.RawMessage(`{"q":1}`), ""}},
		{"search", `{}`, Call{Function, "", "search", json.RawMessage(`{}`), ""}},
		{"later__f", `{}`, Call{Function, "later", "f", json.RawMessage(`{}`), ""}},
		{"unknown", `{}`, Call{Function, "", "unknown", json.RawMessage(`{}`), ""}},
		{"apply_patch", `{"input":"*** Begin\n"}`, Call{Custom, "", "apply_patch", nil, "*** Begin\n"}},
		{"x__apply_patch", `{"input":""}`, Call{Custom, "x", "apply_patch", nil, ""}},
		{"apply_patch", `{"patch":"p"}`, Call{Custom, "", "apply_patch", nil, "p"}},
		{"apply_patch", `{"input":{"a":1}}`, Call{Custom, "", "apply_patch", nil, `{"a":1}`}},
		{"apply_patch", `{"a":"1","b":"2"}`, Call{Custom, "", "apply_patch", nil, `{"a":"1","b":"2"}`}},
		{"apply_patch", `"text"`, Call{Custom, "", "apply_patch", nil, "text"}},
	} {
		got := s.Call(parse.ToolCall{Name: c.name, Arguments: json.RawMessage(c.arguments)})
		if got.Kind != c.want.Kind || got.Namespace != c.want.Namespace || got.Name != c.want.Name ||
			string(got.Arguments) != string(c.want.Arguments) || got.Input != c.want.Input {
			t.Errorf("%s %s: %+v", c.name, c.arguments, got)
		}
	}
}

// What the model sees: what the client wrote, in its order, without what is for the server.
func TestShown(t *testing.T) {
	const input = `"properties": {"input": {"type": "string", "description": "The whole input of the tool, as plain text."`
	for text, want := range map[string]string{
		`{"type":"function","function":{"description":"d","name":"f","parameters":{}},"more":1}`: `{"type": "function", ` +
			`"function": {"description": "d", "name": "f", "parameters": {}}, "more": 1}`,
		`{"function":{"name":"f"}}`: `{"type": "function", "function": {"name": "f"}}`,
		search: `{"type": "function", "function": {"name": "search", "description": "Finds notes.", "strict": false, ` +
			`"parameters": {"type": "object"}}}`,
		patch: `{"type": "function", "function": {"name": "apply_patch", "description": "Edits files.\n\nThe input matches ` +
			`this Lark grammar:\nstart: \"a\"", "parameters": {"type": "object", ` + input +
			`}}, "required": ["input"], "additionalProperties": false}}}`,
		`{"type":"custom","custom":{"name":"f","format":{"type":"grammar","grammar":{"syntax":"regex",` +
			`"definition":"a+|b"}}}}`: `{"type": "function", "function": {"name": "f", ` +
			`"description": "The input matches this regular expression: a+|b", ` +
			`"parameters": {"type": "object", ` + input + `, "pattern": "^(?:a+|b)$"}}, "required": ["input"], ` +
			`"additionalProperties": false}, "strict": true}}`,
		`{"type":"custom","name":"f","format":{"type":"grammar","syntax":"regex","definition":"(a"}}`: `{"type": ` +
			`"function", "function": {"name": "f", "description": "The input matches this regular expression: (a", ` +
			`"parameters": ` +
			`{"type": "object", ` + input + `}}, "required": ["input"], "additionalProperties": false}}}`,
		`{"type":"namespace","name":"n","description":"About n.","tools":[{"name":"f","description":"d"}]}`: `{"type": ` +
			`"function", "function": {"name": "n__f", "description": "(n: About n.) d"}}`,
	} {
		s, err := ReadResponses(t.Context(), list(t, `[`+text+`]`))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		b, err := s.tools[0].Shown.MarshalJSON()
		if string(b) != want || err != nil {
			t.Errorf("%s:\n%s, %v\nwant\n%s", text, b, err, want)
		}
	}
}

func TestChoices(t *testing.T) {
	all := `[` + notes + `,` + patch + `,{"name":"f"},{"type":"namespace","name":"x","tools":[{"name":"g"},{"name":"f"},` +
		`{"name":"twice"}]},{"type":"namespace","name":"y","tools":[{"name":"twice"}]},{"type":"web_search"}]`
	for _, c := range [][2]string{
		{``, "auto"},
		{`null`, "auto"},
		{`"auto"`, "auto"},
		{`"none"`, "none"},
		{`"required"`, "required"},
		{`{"type":"function","name":"f"}`, "required f"},
		{`{"type":"function","function":{"name":"f"}}`, "required f"},
		{`{"name":"f"}`, "required f"},
		{`{"type":"function","namespace":"x","name":"f"}`, "required x__f"},
		{`{"type":"function","name":"g"}`, "required x__g"},
		{`{"type":"function","name":"mcp__notes__search"}`, "required mcp__notes__search"},
		{`{"type":"custom","name":"apply_patch"}`, "required apply_patch"},
		{`{"type":"custom","custom":{"name":"apply_patch"}}`, "required apply_patch"},
		{`{"type":"namespace","name":"x"}`, "required x__g x__f x__twice"},
		{`{"type":"allowed_tools","mode":"auto","tools":[{"type":"web_search"},{"type":"function","name":"f"}]}`,
			"auto f"},
		{`{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"namespace","name":"x"}]}}`,
			"required x__g x__f x__twice"},
		{`"any"`, "tool_choice: any is not auto, none, required or a tool"},
		{`7`, "tool_choice: must be auto, none, required, a tool or allowed_tools"},
		{`{}`, "tool_choice: a tool must have the type function and a name"},
		{`{"type":"web_search"}`, "tool_choice: this server does not run the tool web_search: name a function"},
		{`{"type":"function","name":"h"}`, `tool_choice: no tool is named "h"`},
		{`{"type":"function","name":"twice"}`,
			`tool_choice: several namespaces have a tool "twice": name its namespace`},
		{`{"type":"function","namespace":"y","name":"g"}`, `tool_choice: no tool is named "y.g"`},
		{`{"type":"allowed_tools","mode":"some"}`, "tool_choice.mode: must be auto or required"},
		{`{"type":"allowed_tools","allowed_tools":{}}`, "tool_choice.allowed_tools.mode: must be auto or required"},
	} {
		choice, want := c[0], c[1]
		s, err := ReadResponses(t.Context(), list(t, all))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		chosen, err := Choice{json.RawMessage(choice)}.read(s)
		if err != nil {
			got = err.Error()
		} else {
			got = strings.Join(append([]string{cmp.Or(chosen.mode, "auto")}, chosen.names...), " ")
		}
		if got != want {
			t.Errorf("%s: %s, want %s", choice, got, want)
		}
	}
}

func TestBadTools(t *testing.T) {
	for text, want := range map[string]string{
		`[null]`:                                        "tools[0]: null, want an object",
		`[{"name":"f"},7]`:                              "tools[1]: a JSON number 7, want an object",
		`[{"type":"function"}]`:                         "tools[0].name: the tool's name is missing",
		`[{"type":"function","function":{}}]`:           "tools[0].function.name: the tool's name is missing",
		`[{"type":"function","function":7}]`:            "tools[0].function: must be an object",
		`[{"type":"namespace","tools":[]}]`:             "tools[0].name: the namespace has no name",
		`[{"type":"namespace","name":"n"}]`:             "tools[0].tools: must be a list of tools",
		`[{"type":"namespace","name":"n","tools":[1]}]`: "tools[0].tools[0]: must be an object",
		`[{"type":"namespace","name":"n","tools":[{"type":"mcp"}]}]`: "tools[0].tools[0]: tool type mcp is not supported " +
			"in a namespace: use function or custom",
	} {
		if _, err := ReadResponses(t.Context(), list(t, text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := ReadChat(t.Context(), list(t, `[{"type":"web_search"}]`)); err == nil ||
		err.Error() != "tools[0]: tool type web_search is not supported: use function or custom" {
		t.Error(err)
	}
	if _, err := ReadFunctions(t.Context(), list(t, `[{"description":"d"}]`)); err == nil ||
		err.Error() != "functions[0].name: the tool's name is missing" {
		t.Error(err)
	}
}

// Few tools may have regular expressions, and compiling them ends with the context.
func TestPatterns(t *testing.T) {
	const tool = `{"type":"custom","name":"f","format":{"type":"grammar","syntax":"regex","definition":"[a-z]+"}}`
	many := func(n int) List { return list(t, "["+strings.Repeat(tool+",", n-1)+tool+"]") }
	if _, err := ReadResponses(t.Context(), many(limits.ToolPatterns)); err != nil {
		t.Error(err)
	}
	want := "tools[32]: at most 32 tools may have regular expressions"
	if _, err := ReadResponses(t.Context(), many(limits.ToolPatterns+1)); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReadChat(ctx, many(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has left: %v", err)
	}
}
