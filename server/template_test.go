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
