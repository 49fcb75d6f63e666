package chat

import (
	"context"
	"regexp"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits"
)

// Request is the input of a prompt. A field with its zero value leaves its template variable undefined or empty.
type Request struct {
	Messages            []Message
	Tools               []Tool
	Documents           jinja.Value // documents for retrieval: a list of objects with title and text
	AddGenerationPrompt bool        // end with the header of the model's turn
	BOS, EOS            string      // the tokenizer's special tokens
	Think               *bool       // enable_thinking; nil: undefined, the template decides
	ThinkLevel          string      // reasoning_effort: minimal, low, medium, high, xhigh, max
	ThinkBudget         *int        // thinking_budget: tokens
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
	if r.ThinkBudget != nil {
		set("thinking_budget", int64(*r.ThinkBudget))
	}
	if r.Extra != nil {
		r.Extra.Each(func(k, v jinja.Value) bool { _ = d.Set(k, v); return true })
	}
	return d
}
