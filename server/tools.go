package server

import (
	"errors"
	"slices"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/talk"
)

// toolUse is how an answer may call tools. The zero value is no tools.
type toolUse struct {
	offers []parse.Offer
	must   bool // it calls one at least
	once   bool // it calls no more than one
}

// format is what an answer has to look like that calls tools so, and is f where it calls none.
//
// Where a tool has to be called, all of the answer is calls. Where one may be, and one of the tools is strict, the form begins with the tag that calls
// begin with: a model whose calls have none is not held to it.
func (u toolUse) format(m *model, p *talk.Prompt, f format) (runtime.Format, error) {
	strict := slices.ContainsFunc(u.offers, func(o parse.Offer) bool { return o.Strict })
	if len(u.offers) == 0 || !u.must && !strict && f.Kind == "" {
		return f.after(p), nil
	}
	g, err := parse.CallGrammar(m.style.Texts.Parser, u.offers, u.once)
	if errors.Is(err, parse.ErrNoGrammar) && !u.must {
		return f.after(p), nil
	}
	if err != nil {
		return f.Format, badRequest("%s: tools: %v", m.name(), err)
	}
	root := "calls"
	switch {
	case u.must:
	case f.Kind == runtime.FormatJSON:
		root = `calls | %json {"type": "object"}`
	case f.Kind == runtime.FormatSchema:
		root = "calls | %json " + f.Source
	case f.Kind != "": // of the answer alone
		return f.after(p), nil
	case g.Open == "":
		return runtime.Format{}, nil
	default:
		return runtime.Format{Kind: runtime.FormatEBNF, Source: g.Rules + "root ::= rest", After: g.Open, Optional: true}, nil
	}
	if p.Thinking != "" { // models put lines between what they think and what they say
		root = `"\n"{0,2} (` + root + ")"
	}
	return runtime.Format{Kind: runtime.FormatEBNF, Source: g.Rules + "root ::= " + root, After: p.Thinking}, nil
}

// offer is what of a tool in OpenAI's form, {"type": "function", "function": {...}}, a grammar has to know.
func offer(t chat.Tool) (o parse.Offer, err error) {
	fn, ok := dictOf(t.Value, "function")
	if !ok {
		return o, errors.New("it has no function")
	}
	name, _ := fn.Get("name")
	if o.Name, ok = name.(string); !ok || o.Name == "" {
		return o, errors.New("its function has no name")
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
