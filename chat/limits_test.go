package chat_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits"
)

// numbered concatenates the format applied to 0 to n-1.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// textCase makes templates of any size. Size at is accepted and rendered, size at+1 is refused.
type textCase struct {
	name, want string
	at         int
	make       func(n int) string
}

func goTextCases() []textCase {
	rep := strings.Repeat
	nested := func(open string) func(int) string {
		return func(n int) string { return "{{.Prompt}}" + rep(open, n) + rep("{{end}}", n) }
	}
	elses := func(word string) func(int) string {
		return func(n int) string {
			return "{{.Prompt}}{{" + word + " 1}}" + rep("{{else "+word+" 1}}", n-1) + "{{end}}"
		}
	}
	named := func(format string) func(int) string {
		return func(n int) string { return numbered(n, format) + "{{.Prompt}}" }
	}
	const nesting, definitions = limits.TemplateNesting, limits.TemplateDefinitions
	return []textCase{
		{"go text", "bytes; at most", limits.TemplateText, func(n int) string { return "{{.Prompt}}" + rep("x", n-11) }},
		{"go if", "blocks nested", nesting, nested("{{if 1}}")},
		{"go range", "blocks nested", nesting, nested("{{- range $.Messages -}}")},
		{"go with", "blocks nested", nesting, nested("{{ with . }}{{/* }} {{end}} */}}{{- /* {{end}} */ -}}")},
		{"go quotes", "blocks nested", nesting - 2, // because two more blocks are open inside
			nested("{{if \"}}{{end}}\\\"\"}}{{if `{{end}}`}}{{if '}'}}{{end}}{{end}}")},
		{"go else if", "blocks nested", nesting, elses("if")},
		{"go else with", "blocks nested", nesting, elses("with")},
		{"go parentheses", "parentheses nested", nesting,
			func(n int) string { return "{{.Prompt}}{{" + rep("(", n) + "1" + rep(")", n) + "}}" }},
		{"go definitions", "definitions", definitions, named(`{{define "%d"}}{{end}}`)},
		{"go blocks", "definitions", definitions, named(`{{block "%d" .}}{{end}}`)},
		{"go variables", "variables", limits.TemplateVariables, named(`{{$v%d := 1}}`)},
		{"go calls", "call each other", limits.TemplateDepth / 10, func(n int) string {
			// Each definition has ten levels, including the last one and the template itself.
			text := numbered(n-2, `{{define "d%d"}}`+rep("{{if 1}}", 9)+`{{template "d%[1]d+1"}}`+rep("{{end}}", 9)+"{{end}}")
			for i := range n - 2 {
				text = strings.Replace(text, fmt.Sprintf(`"d%d+1"`, i), fmt.Sprintf(`"d%d"`, i+1), 1)
			}
			return text + fmt.Sprintf(`{{define "d%d"}}`, n-2) + rep("{{if 1}}", 9) + rep("{{end}}", 9) + "{{end}}" +
				rep("{{if 1}}", 9) + `{{template "d0"}}` + rep("{{end}}", 9) + "{{.Prompt}}"
		}},
	}
}

func jinjaTextCases() []textCase {
	rep := strings.Repeat
	chain := func(first, link string) func(int) string {
		return func(n int) string { return "{{ " + first + rep(link, n) + " }}" }
	}
	named := func(format string) func(int) string {
		return func(n int) string { return numbered(n, format) }
	}
	// The output, its last value and each link are one level each.
	const deepest, named500 = limits.TemplateDepth - 2, limits.TemplateDefinitions
	return []textCase{
		{"jinja text", "bytes; at most", limits.TemplateText, func(n int) string { return rep("x", n) }},
		{"jinja if", "blocks nested", limits.TemplateNesting,
			func(n int) string { return rep("{% if 1 %}", n) + rep("{% endif %}", n) }},
		{"jinja for", "blocks nested", limits.TemplateNesting,
			func(n int) string { return rep("{% for a in b %}", n) + rep("{% endfor %}", n) }},
		{"jinja parentheses", "nested too deeply", 4*limits.TemplateNesting - 1,
			func(n int) string { return "{{ " + rep("(", n) + "1" + rep(")", n) + " }}" }},
		{"jinja conditions", "chained more than", deepest, chain("1", " if 1")},
		{"jinja or", "chained more than", deepest, chain("0", " or 0")},
		{"jinja plus", "chained more than", deepest, chain("0", "+0")},
		{"jinja filters", "chained more than", deepest, chain("'a'", "|trim")},
		{"jinja macros", "macros and calls", named500, named("{%% macro m%d() %%}{%% endmacro %%}")},
		{"jinja generations", "macros and calls", named500,
			named("{%% generation %%}{# %d #}{%% endgeneration %%}")},
		{"jinja parameters", "arguments", limits.TemplateArguments, func(n int) string {
			return "{% macro m(" + strings.TrimSuffix(numbered(n, "a%d,"), ",") + ") %}{% endmacro %}"
		}},
		{"jinja arguments", "arguments", limits.TemplateArguments,
			func(n int) string { return "{% if 0 %}{{ m(" + numbered(n, "a%d=1,") + ") }}{% endif %}" }},
	}
}

// Every limit on a template's text holds in both languages.
func TestTemplateTextLimits(t *testing.T) {
	r := chat.Request{Messages: []chat.Message{{Role: "user", Content: "Hi"}}}
	for _, c := range append(goTextCases(), jinjaTextCases()...) {
		text := c.make(c.at)
		tmpl, err := chat.Parse(t.Context(), text)
		if err == nil {
			_, err = tmpl.Render(t.Context(), r)
		}
		if err != nil {
			t.Errorf("%s: %d: %v", c.name, c.at, err)
		}
		_, err = chat.Parse(t.Context(), c.make(c.at+1))
		if !errors.Is(err, jinja.ErrLimit) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d: got %v, want a limit: %q", c.name, c.at+1, err, c.want)
		}
	}
	// The compiler copies the names of branches for every branch.
	branches := func(n int) string {
		return "{% if 0 %}" + numbered(n, "{%% set a%d = 1 %%}{%% elif 0 %%}") + "{% endif %}"
	}
	if _, err := chat.Parse(t.Context(), branches(100)); err != nil {
		t.Error(err)
	}
	if _, err := chat.Parse(t.Context(), branches(5000)); !errors.Is(err, jinja.ErrLimit) ||
		!strings.Contains(err.Error(), "to compile") {
		t.Errorf("got %v, want the limit of compiling", err)
	}
}

// chain returns a template of n definitions, each of which calls the next.
func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{{define "d%d"}}{{template "d%d"}}{{end}}`, i, i+1)
	}
	return b.String() + `{{template "d0"}}{{.Prompt}}`
}

// Templates that once overflowed the stack or took minutes return an error.
func TestHostileTemplateTexts(t *testing.T) {
	rep := strings.Repeat
	const n = 500_000
	for name, text := range map[string]string{
		"if":              rep("{{if 1}}", n),
		"if with ends":    rep("{{if 1}}", n) + rep("{{end}}", n),
		"definitions":     chain(30_000),
		"few definitions": chain(limits.TemplateDefinitions + 1),
		"else if":         "{{if 1}}" + rep("{{else if 1}}", n) + "{{end}}",
		"short else if":   "{{if 1}}" + rep("{{else if 1}}", 15_000) + "{{end}}",
		"or":              "{{ 1" + rep(" or 1", 50_000) + " }}",
		"conditions":      "{{ 1" + rep(" if 1", 50_000) + " }}",
		"calls":           "{{ a" + rep("()", 100_000) + " }}",
		"tests":           "{{ (a" + rep(".b is odd).c", 20_000) + " }}",
		"cycle":           `{{define "a"}}{{template "b"}}{{end}}{{define "b"}}{{template "a"}}{{end}}{{.Prompt}}`,
	} {
		if _, err := chat.Parse(t.Context(), text); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want an error of one line", name, err)
		}
	}
}

func TestParseEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, text := range []string{chain(100), "{% if 1 %}{% endif %}"} {
		if _, err := chat.Parse(ctx, text); !errors.Is(err, context.Canceled) {
			t.Errorf("%.20s: got %v", text, err)
		}
	}
}

// Every limit on a render holds in both languages.
func TestTemplateRenderLimits(t *testing.T) {
	ask := func(content string) chat.Request {
		return chat.Request{Messages: []chat.Message{{Role: "user", Content: content}}}
	}
	doubling := strings.Join([]string{
		`{{define "d0"}}x{{end}}`, `{{define "d1"}}{{template "d0"}}{{template "d0"}}{{end}}`}, "")
	for i := 2; i < 60; i++ {
		doubling += fmt.Sprintf(`{{define "d%d"}}{{template "d%d"}}{{template "d%d"}}{{end}}`, i, i-1, i-1)
	}
	quotes := func(fn string) string {
		return fmt.Sprintf("{{$x := `\"'\\`}}{{range 100}}{{$x = %s $x}}{{end}}{{.Prompt}}", fn)
	}
	const steps, memory, output, calls = "steps", "bytes of memory", "bytes of output", "recursion"
	for _, c := range []struct{ text, want string }{
		{"{{range 1000000000}}{{end}}{{.Prompt}}", steps},
		{"{{range 1000000}}{{range 1000000}}{{end}}{{end}}{{.Prompt}}", steps},
		{doubling + `{{template "d59"}}{{.Prompt}}`, steps},
		{"{{range 1000000}}" + strings.Repeat("x", 10000) + "{{end}}{{.Prompt}}", output},
		{"{{$x := .Prompt}}{{range 100}}{{$x = printf `%s%s` $x $x}}{{end}}", memory},
		{"{{$x := .Prompt}}{{range 100}}{{$x = print $x $x}}{{end}}", memory},
		{"{{$x := .Prompt}}{{range 100}}{{$x = println $x $x}}{{end}}", memory},
		{quotes("js"), memory}, {quotes("json"), memory}, {quotes("html | printf `%s%[1]s`"), "index"},
		{quotes("printf `%q`"), memory},
		{"{{$x := .Prompt}}{{range 100}}{{$x = urlquery $x $x $x}}{{end}}", memory},
		{"{{printf `%1000000d` 1}}{{.Prompt}}", "width"},
		{"{{printf `%.999999f` 1.5}}{{.Prompt}}", "width"},
		{"{{printf `%*d` 1000000 1}}{{.Prompt}}", "width"},
		{"{{printf `%[1]s%[1]s` .Prompt}}", "index"},
		{"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", steps},
		{"{% for a in range(100000) %}{% set x = 'x' * 500 %}{% endfor %}", memory},
		{"{% for a in range(100000) %}" + strings.Repeat("x", 1000) + "{% endfor %}", output},
		{"{{ 'x' * 500000000 }}", memory},
		{"{% set x = ('a' * 3000000).split('a') %}", memory}, {"{{ [1]|map(attribute='.' * 1000000)|first }}", steps},
		{"{{ [1]|sort(attribute=',' * 1000000) }}", memory},
		{"{% for a in range(100000) %}{% set b %}" + strings.Repeat("x", 1000) + "{% endset %}{% endfor %}", memory},
		{strings.Repeat("{% set b %}{% for a in range(350) %}"+strings.Repeat("x", 20000)+"{% endfor %}", 3) +
			strings.Repeat("{% endset %}", 3), memory},
		{"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", calls},
		{"{% macro m() %}{% if 1 %}{{ 0" + strings.Repeat("+0", 900) + " + m()|length }}{% endif %}{% endmacro %}{{ m() }}",
			calls},
		{"{% set ns = namespace(l=['a']) %}{% for i in range(100000) %}{% set ns.l = ns.l|map('upper') %}{% endfor %}" +
			"{{ ns.l|list }}", calls},
		{"{% set ns = namespace(t=(1,)) %}{% for i in range(100000) %}{% set ns.t = (ns.t, ns.t) %}{% endfor %}" +
			"{{ {ns.t: 1} }}", "tuple as a key"},
	} {
		tmpl, err := chat.Parse(t.Context(), c.text)
		if err == nil {
			var out string
			out, err = tmpl.Render(t.Context(), ask("And now?"))
			if out != "" {
				t.Errorf("%.60s: %d bytes of output with an error", c.text, len(out))
			}
		}
		if !errors.Is(err, jinja.ErrLimit) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60s: got %v, want a limit: %q", c.text, err, c.want)
		}
	}
	// The limits grow with the size of the variables, but stay bounded.
	long := ask(strings.Repeat("word ", 1<<20))
	for text, ok := range map[string]bool{
		"{{ messages[0].content }}{{ messages[0].content }}":                             true,
		"{{ messages[0].content|replace('d', 'd') * 2 }}":                                true,
		"{% set a %}" + strings.Repeat("{{ messages[0].content }}", 20) + "{% endset %}": false,
		strings.Repeat("{{ messages[0].content }}", 8):                                   false,
		"{{.Prompt}}{{.Prompt}}":                                                         true,
		"{{$x := print .Prompt .Prompt}}{{$x}}":                                          true,
		strings.Repeat("{{.Prompt}}", 8):                                                 false,
		"{{range 20}}{{$x := print $.Prompt}}{{end}}":                                    false,
	} {
		tmpl, err := chat.Parse(t.Context(), text)
		if err == nil {
			_, err = tmpl.Render(t.Context(), long)
		}
		if ok && err != nil || !ok && !errors.Is(err, jinja.ErrLimit) {
			t.Errorf("%.60s: got %v, want success: %v", text, err, ok)
		}
	}
}

// What a render may evaluate depends on its variables, and the time ends what counts too little.
func TestWorkOfARender(t *testing.T) {
	const short, long = limits.TemplateStepsLeast, limits.TemplateStepsLeast + 200_000*limits.TemplateStepsPerByte
	for text, perRound := range map[string]int{
		"{% for i in range(N) %}{% for j in range(1000) %}{% endfor %}{% endfor %}": 1000,
		"{{range N}}{{range 1000}}{{end}}{{end}}{{.Prompt}}":                        36_000,
	} {
		for _, c := range []struct {
			bytes, steps int
			time         time.Duration
			want         string
		}{
			{10, short * 8 / 10, 0, ""}, {10, short * 12 / 10, 0, "steps"}, {200_000, long * 8 / 10, 0, ""},
			{200_000, long * 12 / 10, 0, "steps"}, {10, short * 8 / 10, 1, "more than 1ns of computing"},
		} {
			tmpl, err := chat.Parse(t.Context(), strings.Replace(text, "N", fmt.Sprint(c.steps/perRound), 1))
			if err != nil {
				t.Fatal(err)
			}
			r := chat.Request{Messages: []chat.Message{{Role: "user", Content: strings.Repeat("x", c.bytes)}}}
			r.Options.Limits.Time = c.time
			_, err = tmpl.Render(t.Context(), r)
			if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, jinja.ErrLimit) ||
				!strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, %d bytes, %d steps: got %v, want %q", text, c.bytes, c.steps, err, c.want)
			}
		}
	}
}
