package openai

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/servertest"
)

func TestSchemaCheck(t *testing.T) {
	f := serve(t, nil)
	for name, c := range map[string]struct {
		body     string
		compiles bool
		accepted []bool
		part     string // of the error, or of what is left out
	}{
		"instances": {`"schema":{"type":"object","properties":{"a":{"type":"integer"}}},` +
			`"instances":[{"a":1.0},{"a":"x"},3]`, true, []bool{true, false, false}, ""},
		"nothing": {`"schema":false,"instances":[1]`, true, []bool{false}, ""},
		"refused": {`"schema":{"not":{"uniqueItems":true}},"instances":[[]]`, false, []bool{false},
			"uniqueItems"},
		"best effort":  {`"schema":{"not":{"uniqueItems":true}},"best_effort":true`, true, []bool{}, "uniqueItems"},
		"unknown":      {`"schema":{"colour":1}`, true, []bool{}, ""},
		"strict":       {`"schema":{"colour":1},"strict_schema":true`, false, []bool{}, "colour"},
		"not a schema": {`"schema":3`, false, []bool{}, "schema"},
	} {
		status, text := f.Ask(t, "POST", "/v1/schema/check", "{"+c.body+"}")
		got := servertest.Decode[grammar.SchemaCheck](t, text)
		said := got.Error + strings.Join(got.LeftOut, " ")
		if status != 200 || got.Compiles != c.compiles || !slices.Equal(got.Accepted, c.accepted) ||
			!strings.Contains(said, c.part) || c.part == "" && said != "" {
			t.Errorf("%s: %d: %s", name, status, text)
		}
	}
	if status, text := f.Ask(t, "POST", "/v1/schema/check", `{"instances":[]}`); status != 400 ||
		!strings.Contains(text, `"param":"schema"`) {
		t.Errorf("no schema: %d: %s", status, text)
	}
}

// The options of schemas reach the format, and what is left out reaches the response.
func TestSchemaOptions(t *testing.T) {
	f := serve(t, nil)
	f.Has(t, "POST", "/v1/chat/completions", hi+"}", 200) // loads the model
	f.Parrot.LeftOut = []string{"/uniqueItems: not enforced"}
	const options = `,"strict_schema":true,"best_effort":true`
	for path, body := range map[string]string{
		"/v1/chat/completions": hi + `,"response_format":{"type":"json_schema","json_schema":{"schema":{}}}` + options,
		"/v1/responses":        `{"model":"talk","input":"x","text":{"format":{"type":"json_schema","schema":{}}}` + options,
	} {
		for _, end := range []string{"}", `,"stream":true}`} {
			if status, text := f.Ask(t, "POST", path, body+end); status != 200 ||
				strings.Count(text, `"left_out":["/uniqueItems: not enforced"]`) != 1 {
				t.Errorf("%s: %d: %s", path, status, text)
			}
			want := runtime.Format{Kind: runtime.FormatSchema, Source: "{}", StrictSchema: true, BestEffort: true}
			if got := f.Parrot.Last(t).Format; got != want {
				t.Errorf("%s: format %+v", path, got)
			}
		}
	}
	const tag = `{"type":"structural_tag","structures":[{"begin":"<f>","schema":{},"end":"</f>"}],"triggers":["<f"]}`
	f.Has(t, "POST", "/v1/chat/completions", hi+`,"response_format":`+tag+options+"}", 200)
	want := runtime.Format{Kind: runtime.FormatTags, Source: tag, StrictSchema: true, BestEffort: true}
	if got := f.Parrot.Last(t).Format; got != want {
		t.Errorf("a structural tag: format %+v", got)
	}
	f.Has(t, "POST", "/v1/chat/completions", hi+`,"response_format":{"type":"json_object"}`+options+"}", 200)
	if got := f.Parrot.Last(t).Format; got.StrictSchema || got.BestEffort {
		t.Errorf("a format without a schema: %+v", got)
	}
}

// A required call follows its schema, strict or not, and is complete when tokens run out.
func TestRequiredCall(t *testing.T) {
	f := serve(t, nil)
	f.Says = []string{`<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>`}
	f.Has(t, "POST", "/v1/chat/completions", hi+"}", 200) // loads the model
	tool := func(more string) string {
		return `{"type":"function","function":{"name":"f",` + more +
			`"parameters":{"type":"object","properties":{"x":{"type":"integer"}}}}}`
	}
	for name, c := range map[string]struct {
		more   string
		ends   runtime.DoneReason
		finish string
		schema bool // the arguments are constrained to the schema
		best   bool
	}{
		"required":        {tool("") + `],"tool_choice":"required"`, "", "tool_calls", true, true},
		"required, short": {tool("") + `],"tool_choice":"required"`, runtime.DoneLength, "tool_calls", true, true},
		"strict":          {tool(`"strict":true,`) + `],"tool_choice":"required"`, "", "tool_calls", true, false},
		"named": {tool("") + `],"tool_choice":{"type":"function","function":{"name":"f"}}`, runtime.DoneLength,
			"tool_calls", true, true},
		"auto":         {tool("") + `]`, "", "tool_calls", false, false},
		"auto, short":  {tool("") + `]`, runtime.DoneLength, "length", false, false},
		"auto, strict": {tool(`"strict":true,`) + `]`, runtime.DoneLength, "length", true, false},
	} {
		f.Parrot.Ends = c.ends
		for _, end := range []string{"}", `,"stream":true}`} {
			status, text := f.Ask(t, "POST", "/v1/chat/completions", hi+`,"tools":[`+c.more+end)
			if status != 200 || !strings.Contains(text, `"finish_reason":"`+c.finish+`"`) {
				t.Errorf("%s: %d: %s; want finish reason %s", name, status, text, c.finish)
			}
			got := f.Parrot.Last(t).Format
			if strings.Contains(got.Source, `"integer"`) != c.schema || got.BestEffort != c.best {
				t.Errorf("%s: format %+v", name, got)
			}
		}
	}
}
