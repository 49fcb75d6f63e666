package server

import (
	"errors"
	"slices"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/chat/prompt"
	"github.com/ingotml/ingot/runtime"
)

// toolUse says how a response may call tools. The zero value means no tools.
type toolUse struct {
	offers   []parse.Offer
	required bool // at least one call
	single   bool // at most one call
}

// format returns the output format of a response that may call tools. Without tools it is f.
//
// If a call is required, the whole response is constrained to calls. If calls are optional and a tool is strict, the
// constraint starts after the tag that opens a call. Calls of models without such a tag are not constrained.
func (u toolUse) format(m *model, p *prompt.Prompt, f format) (runtime.Format, error) {
	strict := slices.ContainsFunc(u.offers, func(o parse.Offer) bool { return o.Strict })
	if len(u.offers) == 0 || !u.required && !strict && f.Kind == "" {
		return f.after(p), nil
	}
	g, err := parse.CallGrammar(m.style.Texts.Parser, u.offers, u.single)
	if errors.Is(err, parse.ErrNoGrammar) && !u.required {
		return f.after(p), nil
	}
	if err != nil {
		return f.Format, badRequest("%s: tools: %v", m.name(), err)
	}
	root := "calls"
	switch {
	case u.required:
	case f.Kind == runtime.FormatJSON:
		root = `calls | %json {"type": "object"}`
	case f.Kind == runtime.FormatSchema:
		root = "calls | %json " + f.Source
	case f.Kind != "": // such a format constrains the whole response: no calls
		return f.after(p), nil
	case g.Open == "":
		return runtime.Format{}, nil
	default:
		return runtime.Format{Kind: runtime.FormatEBNF, Source: g.Rules + "root ::= rest", After: g.Open,
			Optional: true}, nil
	}
	if p.Thinking != "" { // models write line breaks between thinking and the rest
		root = `"\n"{0,2} (` + root + ")"
	}
	return runtime.Format{Kind: runtime.FormatEBNF, Source: g.Rules + "root ::= " + root, After: p.Thinking}, nil
}

// offer converts a tool in OpenAI's form, {"type": "function", "function": {...}}, to what a grammar needs.
func offer(t chat.Tool) (o parse.Offer, err error) {
	fn, ok := dictOf(t.Value, "function")
	if !ok {
		return o, errors.New("function is missing")
	}
	name, _ := fn.Get("name")
	if o.Name, ok = name.(string); !ok || o.Name == "" {
		return o, errors.New("the function's name is missing")
	}
	if schema, ok := fn.Get("parameters"); ok && schema != nil {
		text, err := jinja.EncodeJSON(schema)
		if err != nil {
			return o, err
		}
		o.Parameters = []byte(text)
	}
	strict, _ := fn.Get("strict")
	o.Strict, _ = strict.(bool)
	return o, nil
}

func dictOf(d *jinja.Dict, key string) (*jinja.Dict, bool) {
	if d == nil {
		return nil, false
	}
	v, _ := d.Get(key)
	out, ok := v.(*jinja.Dict)
	return out, ok
}
