package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Templates in requests cannot crash the server. They cause client errors.
func TestHostileTemplates(t *testing.T) {
	f := serve(t, nil)
	var chain strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&chain, `{{define "t%d"}}{{template "t%d"}}{{end}}`, i, i+1)
	}
	for _, c := range []struct {
		text, want string
		create     bool // create also rejects it, without rendering it
	}{
		{strings.Repeat("{{if 1}}", 500_000), "bytes; at most", true},
		{strings.Repeat("{{if 1}}", 500_000) + strings.Repeat("{{end}}", 500_000), "bytes; at most", true},
		{strings.Repeat("{{if 1}}", 15_000) + strings.Repeat("{{end}}", 15_000), "nested more than", true},
		{"{{if 1}}" + strings.Repeat("{{else if 1}}", 15_000) + "{{end}}", "nested more than", true},
		{chain.String(), "bytes; at most", true},
		{chain.String()[:200_000], "more than", true},
		{"{{ 1" + strings.Repeat(" or 1", 50_000) + " }}", "chained", true},
		{"{{$x := .Prompt}}{{range 100}}{{$x = js (print $x $x)}}{{end}}{{$x}}", "bytes of memory", false},
		{"{{ 'x' * 500000000 }}", "bytes of memory", false},
	} {
		text, err := json.Marshal(c.text)
		if err != nil {
			t.Fatal(err)
		}
		f.Has(t, "POST", "/api/generate", fmt.Sprintf(`{"model":"plain","prompt":"x","template":%s}`, text), 400,
			`{"error":"`, c.want)
		if c.create {
			f.Has(t, "POST", "/api/create", fmt.Sprintf(`{"model":"x","from":"plain","template":%s}`, text), 400, `{"error":"`,
				c.want)
		}
	}
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","template":"{{ .Prompt }}","stream":false}`, 200)
}

// An error names the model once, whatever part of the server adds the name.
func TestErrorsNameTheModelOnce(t *testing.T) {
	f := serve(t, nil)
	const tools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`
	for path, body := range map[string]string{
		"/api/chat":            `"messages":[{"role":"user","content":"x"}],` + tools,
		"/v1/chat/completions": `"messages":[{"role":"user","content":"x"}],"tool_choice":"required",` + tools,
		"/v1/responses":        `"input":"x","tools":[{"type":"function","name":"f"}]`,
		"/v1/tokenize":         `"messages":[{"role":"user","content":"x"}],` + tools,
		"/v1/messages": `"max_tokens":9,"messages":[{"role":"user","content":"x"}],` +
			`"tools":[{"name":"f","input_schema":{"type":"object"}}]`,
	} {
		status, text := f.Ask(t, "POST", path, `{"model":"plain",`+body+`}`)
		if status != 400 || strings.Count(text, "plain:latest") != 1 || !strings.Contains(text, "no chat template") {
			t.Errorf("%s: %d: %s", path, status, text)
		}
	}
}
