package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/limits"
)

// Request is what a prompt is made of. The zero value of each field leaves its variable out or empty.
type Request struct {
	Messages            []Message
	Tools               []Tool
	Documents           jinja.Value // for retrieval: a list of objects with title and text
	AddGenerationPrompt bool        // end with what begins the model's turn
	BOS, EOS            string      // the tokenizer's own
	Think               *bool       // enable_thinking; nil = as the template likes
	ThinkLevel          string      // reasoning_effort: low, medium, high
	Extra               *jinja.Dict // further variables; they win over those above
	Suffix              string      // text behind the gap to fill; Go templates only
	Options             jinja.Options
}

// Template is a chat template of either language. It is safe for concurrent use.
type Template interface {
	// Render makes the prompt of a request.
	Render(ctx context.Context, r Request) (string, error)
	// RenderVars renders with the variables exactly as given.
	RenderVars(ctx context.Context, vars *jinja.Dict, o jinja.Options) (string, error)
}

// What tells the languages apart. A Go action is a field, a variable, a comment, or a keyword that Jinja has in other
// braces; there, Jinja would print a variable of that name. A function may be either.
var (
	jinjaStatement = regexp.MustCompile(`\{%[-+]?\s*[a-z]`)
	goAction       = regexp.MustCompile(`\{\{-?\s*(\.[A-Za-z]|\$|/\*|(if|range|with|end|else|define|template|block|break|continue)\b)`)
	goOrJinja      = regexp.MustCompile(`\{\{-?\s*(json|slice|len|index|eq|ne|lt|le|gt|ge|and|or|not|print|println|printf)\b[^|}]*[ .$]?`)
)

// Parse reads a template and tells which of the languages it is in: Jinja unless it has actions of Go's and no statements
// of Jinja's, which may show Go's actions in a text. Its error wraps jinja.ErrSyntax, jinja.ErrLimit or ErrTemplate.
// It takes time in proportion to the text, whose length limits.TemplateText bounds, and ends with the context's error.
func Parse(ctx context.Context, text string) (Template, error) {
	if len(text) > limits.TemplateText {
		return nil, tooMuch("a template of %d bytes; at most %d", len(text), limits.TemplateText)
	}
	switch {
	case jinjaStatement.MatchString(text):
	case goAction.MatchString(text):
		return parseGo(ctx, text)
	case goOrJinja.MatchString(text):
		if t, err := parseGo(ctx, text); err == nil {
			return t, nil
		}
	}
	j, err := jinja.Compile(ctx, text)
	if err != nil {
		return nil, err
	}
	return jinjaTemplate{j}, nil
}

type jinjaTemplate struct{ t *jinja.Template }

func (t jinjaTemplate) RenderVars(ctx context.Context, vars *jinja.Dict, o jinja.Options) (string, error) {
	return t.t.Render(ctx, vars, o)
}

func (t jinjaTemplate) Render(ctx context.Context, r Request) (string, error) {
	return t.t.Render(ctx, r.Vars(), r.Options)
}

// Vars are the variables that a Jinja template gets, as transformers' apply_chat_template gives them.
func (r Request) Vars() *jinja.Dict {
	d := jinja.NewDict()
	set := func(k string, v jinja.Value) { _ = d.Set(k, v) }
	messages := &jinja.List{}
	for _, m := range r.Messages {
		messages.Items = append(messages.Items, m.value())
	}
	set("messages", messages)
	set("tools", nil)
	if len(r.Tools) > 0 {
		tools := &jinja.List{}
		for _, t := range r.Tools {
			tools.Items = append(tools.Items, t.Value)
		}
		set("tools", tools)
	}
	set("documents", r.Documents)
	set("add_generation_prompt", r.AddGenerationPrompt)
	set("bos_token", r.BOS)
	set("eos_token", r.EOS)
	if r.Think != nil {
		set("enable_thinking", *r.Think)
		set("thinking", *r.Think)
	}
	if r.ThinkLevel != "" {
		set("reasoning_effort", r.ThinkLevel)
	}
	if r.Extra != nil {
		r.Extra.Each(func(k, v jinja.Value) bool { _ = d.Set(k, v); return true })
	}
	return d
}

// File is a file that came with a model.
type File struct {
	Name string
	Data []byte
}

// TemplateFile is the name under which Choose takes the TEMPLATE of a Modelfile; it wins over what the model came with.
const TemplateFile = "TEMPLATE"

// HoldsTemplate tells whether a file of a model may hold chat templates.
func HoldsTemplate(name string) bool {
	switch name {
	case "chat_template.jinja", "chat_template.json", "tokenizer_config.json":
		return true
	}
	return path.Dir(name) == "additional_chat_templates" && path.Ext(name) == ".jinja"
}

// Choose finds the text of the template with a name, "" being the default one, among a model's files.
// Its error is ErrNoTemplate, or ErrOtherTemplates, which names those that there are.
func Choose(files []File, name string) (string, error) {
	all, order := map[string]string{}, []string{}
	add := func(name, text string) {
		if _, ok := all[name]; !ok && text != "" {
			all[name] = text
			order = append(order, name)
		}
	}
	for _, want := range []string{TemplateFile, "chat_template.jinja", "chat_template.json", "tokenizer_config.json", ""} {
		for _, f := range files {
			switch {
			case want == "" && path.Dir(f.Name) == "additional_chat_templates":
				add(strings.TrimSuffix(path.Base(f.Name), ".jinja"), string(f.Data))
			case f.Name != want:
			case path.Ext(want) == ".json":
				if err := addConfig(f, add); err != nil {
					return "", err
				}
			default:
				add("default", string(f.Data))
			}
		}
	}
	if name == "" {
		name = "default"
		if len(order) == 1 {
			name = order[0]
		}
	}
	if text, ok := all[name]; ok {
		return text, nil
	}
	if len(order) == 0 {
		return "", ErrNoTemplate
	}
	return "", fmt.Errorf("%w: there is no %q, but %s", ErrOtherTemplates, name, strings.Join(order, ", "))
}

// addConfig reads chat_template of a configuration: one text, or a list of names with texts.
func addConfig(f File, add func(name, text string)) error {
	var c struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(f.Data, &c); err != nil {
		return fmt.Errorf("%s: %w: %v", f.Name, ErrTemplate, err)
	}
	if len(c.Template) == 0 || string(c.Template) == "null" {
		return nil
	}
	var one string
	if json.Unmarshal(c.Template, &one) == nil {
		add("default", one)
		return nil
	}
	var many []struct{ Name, Template string }
	if err := json.Unmarshal(c.Template, &many); err != nil {
		return fmt.Errorf("%s: %w: chat_template is neither a text nor a list of named ones", f.Name, ErrTemplate)
	}
	for _, t := range many {
		add(t.Name, t.Template)
	}
	return nil
}
