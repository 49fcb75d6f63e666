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
	"github.com/ingotml/ingot/limits/jsonread"
)

// Request is the input of a prompt. A field with its zero value leaves its template variable undefined or empty.
type Request struct {
	Messages            []Message
	Tools               []Tool
	Documents           jinja.Value // documents for retrieval: a list of objects with title and text
	AddGenerationPrompt bool        // end with the header of the model's turn
	BOS, EOS            string      // the tokenizer's special tokens
	Think               *bool       // enable_thinking; nil: undefined, the template decides
	ThinkLevel          string      // reasoning_effort: low, medium, high
	Extra               *jinja.Dict // more variables; they override those above
	Suffix              string      // text after the gap to fill; Go templates only
	Options             jinja.Options
}

// Template is a parsed chat template of either language. It is safe for concurrent use.
type Template interface {
	// Render renders the prompt of a request.
	Render(ctx context.Context, r Request) (string, error)
	// RenderVars renders with exactly these variables.
	RenderVars(ctx context.Context, vars *jinja.Dict, o jinja.Options) (string, error)
}

// Patterns that detect the language. goAction matches a field, a variable, a comment, or a keyword that Jinja writes in
// {% %}; in {{ }}, Jinja would print a variable of that name. goOrJinja matches functions, which are valid in both
// languages.
var (
	jinjaStatement = regexp.MustCompile(`\{%[-+]?\s*[a-z]`)
	goAction       = regexp.MustCompile(`\{\{-?\s*(\.[A-Za-z]|\$|/\*|` +
		`(if|range|with|end|else|define|template|block|break|continue)\b)`)
	goOrJinja = regexp.MustCompile(`\{\{-?\s*` +
		`(json|slice|len|index|eq|ne|lt|le|gt|ge|and|or|not|print|println|printf)\b[^|}]*[ .$]?`)
)

// Parse parses a template and detects its language: Go if the text has Go actions and no Jinja statements, otherwise
// Jinja. A Jinja template may contain Go actions as text. The error wraps jinja.ErrSyntax, jinja.ErrLimit or
// ErrTemplate, or is the context's error. Time is linear in the length of the text, which limits.TemplateText bounds.
func Parse(ctx context.Context, text string) (Template, error) {
	if len(text) > limits.TemplateText {
		return nil, limitError("a template of %d bytes; at most %d", len(text), limits.TemplateText)
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

// Vars returns the variables of a Jinja template, as apply_chat_template in transformers defines them.
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

// File is a file of a model.
type File struct {
	Name string
	Data []byte
}

// TemplateFile is the name of the File that holds the TEMPLATE of a Modelfile. It has precedence over the model's own
// files.
const TemplateFile = "TEMPLATE"

// HoldsTemplate reports whether a model's file with this name can hold chat templates.
func HoldsTemplate(name string) bool {
	switch name {
	case "chat_template.jinja", "chat_template.json", "tokenizer_config.json":
		return true
	}
	return path.Dir(name) == "additional_chat_templates" && path.Ext(name) == ".jinja"
}

// Choose returns the text of the template called name among a model's files; "" selects the default template. It
// returns ErrNoTemplate, or ErrOtherTemplates with the names that exist.
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

// addConfig reads chat_template of a configuration: a string, or a list of named templates.
func addConfig(f File, add func(name, text string)) error {
	o := jsonread.Options{Nesting: limits.TokenizerNesting, ReplaceSurrogates: true}
	template, err := jsonread.Member(f.Data, "chat_template", o)
	if err != nil {
		return fmt.Errorf("%s: %w: %v", f.Name, ErrTemplate, err)
	}
	if len(template) == 0 || string(template) == "null" {
		return nil
	}
	var one string
	if json.Unmarshal(template, &one) == nil {
		add("default", one)
		return nil
	}
	var many []struct{ Name, Template string }
	if err := json.Unmarshal(template, &many); err != nil {
		return fmt.Errorf("%s: %w: chat_template is neither a string nor a list of named templates", f.Name, ErrTemplate)
	}
	for _, t := range many {
		add(t.Name, t.Template)
	}
	return nil
}
