package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
)

// FuzzGoTemplate checks that Parse and Render of possible Go templates neither panic nor hang nor exceed their limits,
// and return only documented errors.
func FuzzGoTemplate(f *testing.F) {
	for _, s := range []string{
		"{{ .System }}{{ range .Messages }}{{ .Role }}{{ .Content }}{{ end }}",
		"{{ if .Response }}{{ .Response }}{{ else if .Prompt }}{{ . }}{{ else }}{{ with .Prompt }}{{ . }}{{ end }}{{ end }}",
		`{{ define "x" }}{{ . }}{{ end }}{{ template "x" .Tools }}{{ block "y" . }}{{ break }}{{ end }}`,
		"{{- /* }} */ -}}{{ $x := `}}` }}{{ range $i, $m := .Messages }}{{ $x = printf `%s%5q` $x $m.Content }}{{ end }}" +
			"{{ $x | js | json }}",
		`{{ range 100 }}{{ print (index $.Messages 0) "a" '}' | html | urlquery }}{{ end }}{{ .Prompt }}`,
		`{{ range .Tools }}{{ . }}{{ .Function.Parameters | json }}{{ range $k, $v := .Function.Parameters.Properties }}` +
			`{{ toTypeScriptType $v }}{{ end }}{{ end }}`,
		`{{ range .Messages }}{{ range .ToolCalls }}{{ printf "%v" .Function.Arguments }}{{ end }}{{ end }}{{ currentDate }}`,
		strings.Repeat("{{ if 1 }}", 150) + strings.Repeat("{{ end }}", 150) + "{{ .Prompt }}",
		`{{ define "a" }}{{ template "b" }}{{ end }}{{ define "b" }}{{ template "a" }}{{ end }}{{ .Prompt }}`,
	} {
		f.Add(s)
	}
	var r chat.Request
	if err := json.Unmarshal([]byte(conversation), &r.Messages); err != nil {
		f.Fatal(err)
	}
	if err := json.Unmarshal([]byte(tools), &r.Tools); err != nil {
		f.Fatal(err)
	}
	r.Options.Limits = jinja.Limits{Steps: 200_000, Memory: 1 << 20, Output: 64 << 10}
	f.Fuzz(func(t *testing.T, text string) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		tmpl, err := chat.Parse(ctx, text)
		if err != nil {
			if !errors.Is(err, chat.ErrTemplate) && !errors.Is(err, jinja.ErrSyntax) && !errors.Is(err, jinja.ErrLimit) {
				t.Errorf("unexpected error: %v", err)
			}
			return
		}
		out, err := tmpl.Render(ctx, r)
		if err != nil && !errors.Is(err, jinja.ErrRender) && !errors.Is(err, jinja.ErrLimit) {
			t.Errorf("unexpected error: %v", err)
		}
		if int64(len(out)) > r.Options.Limits.Output {
			t.Errorf("%d bytes", len(out))
		}
		if ctx.Err() != nil {
			t.Error("timeout")
		}
	})
}
