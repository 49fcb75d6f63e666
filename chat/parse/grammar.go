package parse

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/chat/parse/calls"
	"github.com/ingotml/ingot/internal/limits"
)

// Grammar describes tool calls as EBNF rules of package grammar, without the rule root.
type Grammar struct {
	Rules string // "calls" matches one or more calls; "rest" matches the same text after Open
	Open  string // opening tag of calls; "" if the format has none and only the text distinguishes calls from content
	// Final is the rule that matches everything before the final message, thinking included; "words" matches any final
	// message, and "calls" a whole response, too. "" if a response is one message.
	Final string
}

// FinalRules returns the EBNF rules of a format whose responses have several messages, or "". Rule "final" matches
// everything before the final message, with tag, the text at its end.
func FinalRules(name string) (rules, tag string) {
	if f, ok := lookup(name); ok {
		return f.rules, f.final
	}
	return "", ""
}

// CallGrammar returns the grammar of a format's calls: exactly one call with once, otherwise one or more. The error
// wraps ErrNoGrammar or reports a schema that is not a JSON object. Unsupported schemas are reported later, when the
// caller compiles the grammar.
func CallGrammar(name string, offers []calls.Offer, once bool) (Grammar, error) {
	f, _ := lookup(name)
	if f == nil || f.syntax == nil {
		return Grammar{}, fmt.Errorf("%w: format %q is not supported", calls.ErrNoGrammar, excerpt(name))
	}
	w := f.syntax
	if len(offers) == 0 {
		return Grammar{}, fmt.Errorf("%w: there are no tools", calls.ErrNoGrammar)
	}
	var b strings.Builder
	var rules []string
	for i, o := range offers {
		call, err := w.Call(o)
		if err != nil {
			return Grammar{}, fmt.Errorf("tool %q: %w", excerpt(o.Name), err)
		}
		rule := fmt.Sprintf("call%d", i)
		fmt.Fprintf(&b, "%s ::= %s\n", rule, call)
		rules = append(rules, rule)
		if b.Len() > limits.GrammarSource {
			return Grammar{}, fmt.Errorf("the grammar of the tools exceeds %d bytes", limits.GrammarSource)
		}
	}
	more := ""
	if !once {
		more = fmt.Sprintf(" (%s call)*", calls.Literal(w.Next))
	}
	fmt.Fprintf(&b, "call ::= %s\n", strings.Join(rules, " | "))
	if w.Head != "" {
		fmt.Fprintf(&b, "calls ::= %s call\n%s", w.Head, f.rules)
		return Grammar{Rules: b.String(), Final: "final"}, nil
	}
	fmt.Fprintf(&b, "rest ::= %s call%s %s\n", calls.Literal(w.Begin), more, calls.Literal(w.End))
	fmt.Fprintf(&b, "calls ::= %s rest\n", calls.Literal(w.Open))
	fmt.Fprintf(&b, "key ::= [A-Za-z_] [A-Za-z0-9_.-]{0,63}\n")
	if w.Avoid != "" {
		fmt.Fprintf(&b, "text ::= %s\n", calls.Without(w.Avoid))
	}
	return Grammar{Rules: b.String(), Open: w.Open}, nil
}
