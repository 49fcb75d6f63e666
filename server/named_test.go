package server_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
)

// createWith creates a model from the demo checkpoint with other files; a name is that of a folder or a key.
func createWith(t *testing.T, st *store.Store, name string, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(servertest.Root(t), "testdata", "models", "demo"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "Modelfile")); err != nil {
		t.Fatal(err)
	}
	for file, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	n, err := manifest.ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	file := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: dir}}}
	if _, err := convert.Create(t.Context(), st, n, file, convert.Options{}); err != nil {
		t.Fatal(err)
	}
}

func withTemplate(t *testing.T, value any) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(servertest.Root(t), "testdata", "models", "demo", "tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	config["chat_template"] = value
	if data, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"tokenizer_config.json": string(data)}
}

// Each API renders the template that the request chooses.
func TestNamedTemplates(t *testing.T) {
	mark := func(name string) string {
		return name + "{% for m in messages %} {{ m.content }}{% endfor %}{% for t in tools or [] %} tool{% endfor %}"
	}
	plain, tools, rag := mark("plain"), mark("tools"), mark("rag")
	type named = map[string]string
	var st *store.Store
	parrots := map[string]pool.Model{}
	f := serve(t, func(o *server.Options) {
		st = o.Store
		load := o.Load
		o.Load = func(ctx context.Context, c server.Child, progress func(float64)) (pool.Model, error) {
			model, err := load(ctx, c, progress)
			name, _, _ := strings.Cut(c.Name, ":")
			parrots[name] = model
			return model, err
		}
	})
	prompt := func(model string) string {
		f.Parrot, _ = parrots[model].(*servertest.Parrot)
		return f.Prompt(t)
	}
	createWith(t, st, "list", withTemplate(t, []named{
		{"name": "rag", "template": rag}, {"name": "tool_use", "template": tools}, {"name": "default", "template": plain}}))
	createWith(t, st, "object", withTemplate(t, named{"default": plain, "tool_use": tools, "rag": rag}))
	createWith(t, st, "folder", named{"chat_template.jinja": plain, "additional_chat_templates/tool_use.jinja": tools,
		"additional_chat_templates/rag.jinja": rag, "additional_chat_templates/README.md": "# x"})
	createWith(t, st, "nodefault", withTemplate(t, named{"tool_use": tools, "rag": rag}))
	createWith(t, st, "broken", withTemplate(t, named{"default": plain, "tool_use": "{% for t in tools %}"}))
	createWith(t, st, "unused", withTemplate(t, named{"default": "{{ messages[0].content }}", "other": tools}))

	const function = `{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}`
	openAI := `,"tools":[{"type":"function","function":` + function + `}]`
	apis := map[string]struct{ path, body, tools, none string }{
		"OpenAI": {"/v1/chat/completions", `"messages":[{"role":"user","content":"hi"}],"max_tokens":4`, openAI,
			`,"tools":null`},
		"Responses": {"/v1/responses", `"input":"hi"`, `,"tools":[{"type":"function",` + function[1:] + `]`, `,"tools":[]`},
		"Anthropic": {"/v1/messages", `"max_tokens":4,"messages":[{"role":"user","content":"hi"}]`,
			`,"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{}}}]`, `,"tools":[]`},
		"Ollama": {"/api/chat", `"stream":false,"messages":[{"role":"user","content":"hi"}]`, openAI, `,"tools":[]`},
	}
	for name, api := range apis {
		for _, model := range []string{"list", "object", "folder"} {
			start := `{"model":"` + model + `",` + api.body
			for end, want := range map[string]string{"": "plain hi", api.none: "plain hi", api.tools: "tools hi tool"} {
				status, response := f.Ask(t, "POST", api.path, start+end+"}")
				if status != 200 {
					t.Errorf("%s, %s%s: %d %s", name, model, end, status, response)
				} else if got := prompt(model); got != want {
					t.Errorf("%s, %s%s: prompt %q, want %q", name, model, end, got, want)
				}
			}
		}
		ask := func(model, end string, status int, parts ...string) {
			f.Has(t, "POST", api.path, `{"model":"`+model+`",`+api.body+end+"}", status, parts...)
		}
		ask("nodefault", api.tools, 200)
		ask("nodefault", "", 400, `there is no \"default\", but rag, tool_use`)
		ask("broken", "", 200)
		ask("broken", api.tools, 400, `template \"tool_use\": template line 1: TemplateSyntaxError`)
		ask("unused", "", 200)
		ask("unused", api.tools, 400, "does not support tools")
	}
	documents := `,"chat_template_kwargs":{"documents":[{"title":"t","text":"x"}]}`
	chat := apis["OpenAI"]
	for end, want := range map[string]string{documents: "rag hi", documents + chat.tools: "tools hi tool",
		`,"chat_template_kwargs":{"documents":[]}`: "plain hi", `,"tool_choice":"none"` + chat.tools: "plain hi"} {
		f.Has(t, "POST", chat.path, `{"model":"list",`+chat.body+end+"}", 200)
		if got := prompt("list"); got != want {
			t.Errorf("%s: prompt %q, want %q", end, got, want)
		}
	}
	f.Has(t, "POST", "/api/show", `{"model":"list"}`, 200, `"tools"`, `plain{% for`)
	if _, response := f.Ask(t, "POST", "/api/show", `{"model":"unused"}`); strings.Contains(response, `"tools"`) {
		t.Errorf("unused: %s", response)
	}
	f.Has(t, "POST", "/api/generate", `{"model":"nodefault","prompt":"x","stream":false,"raw":true}`, 200)
}
