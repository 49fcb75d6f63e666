package server

import (
	"errors"
	"slices"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/chat/parse/calls"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// ToolUse says how a response may call tools. The zero value means no tools.
type ToolUse struct {
	Offers   []calls.Offer
	Required bool // at least one call
	Single   bool // at most one call
	Schemas  params.SchemaOptions
}

// Format returns the output format of a response that may call tools. Without tools it is f.
//
// If a call is required, the whole response is constrained to calls whose arguments match their schemas, strict or not.
// What cannot be enforced is refused only if a tool is strict. If calls are optional and a tool is strict, the
// constraint starts after the tag that opens a call, behind thinking. Calls of models without such a tag are not
// constrained.
func (u ToolUse) Format(m *Model, p *prompt.Prompt, f params.Format) (runtime.Format, error) {
	if u.Required {
		strict := slices.ContainsFunc(u.Offers, func(o calls.Offer) bool { return o.Strict })
		u.Schemas.BestEffort = u.Schemas.BestEffort || !strict
		u.Offers = slices.Clone(u.Offers)
		for i := range u.Offers {
			u.Offers[i].Strict = true
		}
	}
	out, err := u.format(m, p, f)
	return u.Schemas.With(params.Format{Format: out}).Format, err
}

func (u ToolUse) format(m *Model, p *prompt.Prompt, f params.Format) (runtime.Format, error) {
	strict := slices.ContainsFunc(u.Offers, func(o calls.Offer) bool { return o.Strict })
	if len(u.Offers) == 0 || !u.Required && !strict && f.Kind == "" {
		return f.ForPrompt(p), nil
	}
	g, err := parse.CallGrammar(m.Style.Texts.Parser, u.Offers, u.Single)
	if errors.Is(err, calls.ErrNoGrammar) && !u.Required {
		return f.ForPrompt(p), nil
	}
	if err != nil {
		return f.Format, wire.BadRequest("%s: tools: %v", m.Name(), err)
	}
	root, rule := "calls", "calls | "
	if g.Final != "" {
		rule += g.Final + " "
	}
	switch {
	case u.Required:
	case f.Terminal() != "":
		root = rule + f.Terminal()
	case f.Kind != "": // such a format constrains the whole response: no calls
		return f.ForPrompt(p), nil
	case g.Final != "":
		root = rule + "words"
	case g.Open == "":
		return runtime.Format{}, nil
	default:
		optional := runtime.Format{Kind: runtime.FormatEBNF, Source: g.Rules + "root ::= rest", After: g.Open, Optional: true}
		if optional.Behind = p.Thinking; p.Thinking == "" { // thinking may mention the tag
			optional.Behind, optional.Open = p.Tags.Close, p.Tags.Open
		}
		return optional, nil
	}
	if p.Thinking != "" { // models write line breaks between thinking and the rest
		root = `"\n"{0,2} (` + root + ")"
	}
	return runtime.Format{Kind: runtime.FormatEBNF, Source: g.Rules + "root ::= " + root, After: p.Thinking}, nil
}

// Offer converts a tool in OpenAI's form to what a grammar needs.
func Offer(t chat.Tool) (o calls.Offer, err error) {
	f, err := t.Function()
	return calls.Offer{Tool: calls.Tool{Name: f.Name, Parameters: f.Parameters}, Strict: f.Strict}, err
}
