package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits"
)

// filesOf returns files in the order of their names, as an image has them.
func filesOf(files map[string]string) (out []chat.File) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if chat.HoldsTemplate(name) || name == chat.TemplateFile {
			out = append(out, chat.File{Name: name, Data: []byte(files[name])})
		}
	}
	return out
}

// Which template a folder's files give to a request is transformers' choice.
func TestNamedLikeTransformers(t *testing.T) {
	data, err := os.ReadFile("testdata/named.json")
	if err != nil {
		t.Fatal(err)
	}
	type result struct{ OK, Err string }
	var cases []struct {
		Name    string
		Files   map[string]string
		Results map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < 35 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	// transformers fails for these; the default template of another file is not ambiguous.
	others := map[string]string{"folder beside a text, none": "config:hi:none"}
	for _, c := range cases {
		templates := chat.ReadTemplates(filesOf(c.Files), "")
		if _, fails := c.Results["load"]; fails != (templates.Err() != nil) {
			t.Errorf("%s: error %v, transformers' is %s", c.Name, templates.Err(), c.Results["load"])
		}
		for key, raw := range c.Results {
			if key == "load" {
				continue
			}
			var want result
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			if other := others[c.Name+", "+key]; other != "" {
				want = result{OK: other}
			}
			got, err := renderNamed(t.Context(), templates, key)
			if (want.Err != "") != (err != nil) || got != want.OK {
				t.Errorf("%s, %s: got %q, %v, want %+v", c.Name, key, got, err, want)
			}
		}
	}
}

// renderNamed renders a request of the golden file.
func renderNamed(ctx context.Context, templates *chat.Templates, key string) (string, error) {
	vars, err := jinja.DecodeVars([]byte(`{"messages": [{"role": "user", "content": "hi"}], "tools": ` +
		map[string]string{"empty": "[]", "tools": `[{"type": "function"}]`}[key] + "}"))
	if key != "empty" && key != "tools" {
		vars, err = jinja.DecodeVars([]byte(`{"messages": [{"role": "user", "content": "hi"}], "tools": null}`))
	}
	if err != nil {
		return "", err
	}
	var n chat.Named
	if name, named := strings.CutPrefix(key, "named "); !named {
		n, err = templates.ForVars(vars)
	} else if i := slices.IndexFunc(templates.All(), func(n chat.Named) bool { return n.Name == name }); i >= 0 {
		n = templates.All()[i]
	} else {
		err = fmt.Errorf("no template %q", name)
	}
	if err != nil {
		return "", err
	}
	compiled, err := templates.Compile(ctx, n)
	if err != nil {
		return "", err
	}
	return compiled.RenderVars(ctx, vars, jinja.Options{})
}

// A request chooses by what it has; see For.
func TestTemplatesFor(t *testing.T) {
	list := func(n ...jinja.Value) *jinja.List { return &jinja.List{Items: n} }
	extra := func(key string, v jinja.Value) *jinja.Dict {
		d := jinja.NewDict()
		d.Put(key, v)
		return d
	}
	tools := []chat.Tool{{}}
	all := map[string]string{"tokenizer_config.json": `{"chat_template": {"rag": "R", "tool_use": "T", "default": "D"}}`}
	noRAG := map[string]string{"tokenizer_config.json": `{"chat_template": {"tool_use": "T", "default": "D"}}`}
	for name, c := range map[string]struct {
		files map[string]string
		r     chat.Request
		want  string
	}{
		"nothing":             {all, chat.Request{}, "D"},
		"no tools":            {all, chat.Request{Tools: []chat.Tool{}}, "D"},
		"tools":               {all, chat.Request{Tools: tools}, "T"},
		"documents":           {all, chat.Request{Documents: list("x")}, "R"},
		"no documents":        {all, chat.Request{Documents: list()}, "D"},
		"both":                {all, chat.Request{Tools: tools, Documents: list("x")}, "T"},
		"variable documents":  {all, chat.Request{Extra: extra("documents", list("x"))}, "R"},
		"variable, empty":     {all, chat.Request{Extra: extra("documents", list())}, "D"},
		"variable null":       {all, chat.Request{Documents: list("x"), Extra: extra("documents", nil)}, "D"},
		"variable tools":      {all, chat.Request{Extra: extra("tools", list("x"))}, "T"},
		"variable over tools": {all, chat.Request{Tools: tools, Extra: extra("tools", nil)}, "D"},
		"documents, no rag":   {noRAG, chat.Request{Documents: list("x")}, "D"},
		"TEMPLATE":            {with(all, chat.TemplateFile, "own"), chat.Request{Tools: tools}, "own"},
		"TEMPLATE over damage": {map[string]string{chat.TemplateFile: "own", "chat_template.json": "5"}, chat.Request{},
			"own"},
		"JSON file":       {with(all, "chat_template.json", `{"chat_template": "J"}`), chat.Request{Tools: tools}, "J"},
		"empty JSON file": {with(all, "chat_template.json", `{}`), chat.Request{Tools: tools}, "T"},
		"NaN elsewhere": {with(all, "chat_template.json", `{"x": NaN, "chat_template": "NaN"}`), chat.Request{},
			"NaN"},
		"an empty one": {with(all, "tokenizer_config.json",
			`{"chat_template": {"default": "D", "tool_use": ""}}`), chat.Request{Tools: tools}, "D"},
		"null in a list": {with(all, "tokenizer_config.json",
			`{"chat_template": [{"name": "default", "template": "D"}, {"name": "tool_use", "template": null}]}`),
			chat.Request{Tools: tools}, "D"},
		"hidden file": {with(noRAG, "additional_chat_templates/.rag.jinja", "h"), chat.Request{Documents: list("x")}, "D"},
		"deeper":      {with(noRAG, "additional_chat_templates/a/rag.jinja", "h"), chat.Request{Documents: list("x")}, "D"},
	} {
		templates := chat.ReadTemplates(filesOf(c.files), "")
		if n, err := templates.For(c.r); err != nil || n.Text != c.want {
			t.Errorf("%s: %q, %v, want %q", name, n.Text, err, c.want)
		}
		if chosen, err := templates.Choose(t.Context(), c.r); err != nil || chosen.Text != c.want || chosen.Template == nil {
			t.Errorf("%s: chosen %q, %v, want %q", name, chosen.Text, err, c.want)
		}
	}
	n, err := chat.ReadTemplates(nil, "deepseek4").For(chat.Request{Tools: tools})
	if n.Text != chat.BuiltIn("deepseek4") {
		t.Errorf("built in: %v", err)
	}
}

func with(files map[string]string, name, text string) map[string]string {
	files = maps.Clone(files)
	files[name] = text
	return files
}

func TestTemplatesRefused(t *testing.T) {
	config := func(v string) map[string]string {
		return map[string]string{"tokenizer_config.json": `{"chat_template": ` + v + `}`}
	}
	many := "["
	for i := range 20 {
		many += fmt.Sprintf(`{"name": "n%d", "template": "x"},`, i)
	}
	for _, c := range []struct {
		files map[string]string
		err   error
		want  string
	}{
		{nil, chat.ErrNoTemplate, ""},
		{config(`[]`), chat.ErrNoTemplate, ""},
		{config(`{}`), chat.ErrNoTemplate, ""},
		{config(`""`), chat.ErrNoTemplate, ""},
		{config(`5`), chat.ErrTemplate, "tokenizer_config.json: chat template cannot be read"},
		{config(`true`), chat.ErrTemplate, "chat_template = true"},
		{config(`NaN`), chat.ErrTemplate, "chat_template = NaN: must be a text"},
		{config(`-Infinity`), chat.ErrTemplate, "chat_template = -Infinity"},
		{config(`["x"]`), chat.ErrTemplate, `chat_template[0] = "x": must be an object with name and template`},
		{config(`[null]`), chat.ErrTemplate, `chat_template[0] = null`},
		{config(`[{"name": "default", "template": "x"}, {"template": "x"}]`), chat.ErrTemplate, "chat_template[1].name"},
		{config(`[{"name": "default"}]`), chat.ErrTemplate, "chat_template[0].template is missing: must be a text"},
		{config(`[{"name": 5, "template": "x"}]`), chat.ErrTemplate, "chat_template[0].name"},
		{config(`[{"name": "default", "template": ["x"]}]`), chat.ErrTemplate, `chat_template[0].template = ["x"]: must`},
		{config(`{"default": {"x": 1}}`), chat.ErrTemplate, `chat_template["default"] = {"x": 1}: must be a text`},
		{config(`{"a\nb": 1}`), chat.ErrTemplate, `chat_template["a b"] = 1`},
		{config(`[{"name": "rag", "template": "x"}, {"name": "a\nb", "template": "x"}]`), chat.ErrOtherTemplates,
			`there is no "default", but rag, a b`},
		{config(`[{"name": "tool_use", "template": "x"}]`), chat.ErrOtherTemplates, `there is no "default", but tool_use`},
		{config(many[:len(many)-1] + "]"), chat.ErrOtherTemplates, "n8, n9, 10 others"},
		{map[string]string{"tokenizer_config.json": `[]`}, chat.ErrTemplate, "tokenizer_config.json"},
		{map[string]string{"chat_template.json": `{`}, chat.ErrTemplate, "chat_template.json"},
	} {
		_, err := chat.ReadTemplates(filesOf(c.files), "").For(chat.Request{})
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\n") ||
			strings.Contains(err.Error(), "Go ") {
			t.Errorf("%v: %v, want %v: %s", c.files, err, c.err, c.want)
		}
	}
}

// A template is compiled once, and one that cannot be compiled does not stop the others.
func TestTemplatesCompiled(t *testing.T) {
	templates := chat.ReadTemplates(filesOf(map[string]string{
		"chat_template.jinja": "{{ messages }}", "additional_chat_templates/tool_use.jinja": "{% for %}",
	}), "")
	first, err := templates.Choose(t.Context(), chat.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := templates.Choose(t.Context(), chat.Request{}); err != nil || again != first {
		t.Errorf("%v, %v", again, err)
	}
	for range 2 {
		_, err := templates.Choose(t.Context(), chat.Request{Tools: []chat.Tool{{}}})
		if !errors.Is(err, jinja.ErrSyntax) || !strings.HasPrefix(err.Error(), `template "tool_use": `) {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	large := chat.One(strings.Repeat("{{ x }}", limits.TemplateText/8))
	if _, err := large.Choose(ctx, chat.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if _, err := large.Choose(t.Context(), chat.Request{}); err != nil { // the error is that request's alone
		t.Error(err)
	}
}

// However many templates a file names, reading them takes time in proportion to its size.
func TestManyTemplates(t *testing.T) {
	var b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&b, `,"%d":"x"`, i)
	}
	templates := chat.ReadTemplates([]chat.File{{Name: "tokenizer_config.json",
		Data: []byte(`{"chat_template": {` + b.String()[1:] + `}}`)}}, "")
	if n := len(templates.All()); n != 200_000 {
		t.Error(n, templates.Err())
	}
}
