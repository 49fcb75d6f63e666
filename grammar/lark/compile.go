package lark

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/schema"
	"github.com/ingotml/ingot/grammar/syntax"
	"github.com/ingotml/ingot/internal/limits"
)

// Compile returns the texts of a grammar, and what the best effort of its schemas left out. Its start rule is the one
// named start.
func Compile(ctx context.Context, source string, o schema.Options) (*expr.Expr, []string, error) {
	if err := expr.CheckSource(source); err != nil {
		return nil, nil, err
	}
	p := &parser{defs: map[string]*definition{}}
	if p.parse(ctx, source); p.Err != nil {
		return nil, nil, p.Err
	}
	c := &compiler{parser: p, ctx: ctx, machines: map[string]*dfa.DFA{}, open: map[string]bool{},
		rules: map[string]*expr.Rule{}, lexemes: map[string]*expr.Expr{}, schemas: schema.Inline{Options: o}}
	if p.defs["start"] == nil || p.defs["start"].terminal {
		return nil, nil, expr.Errorf(expr.ErrInvalid, "the grammar has no rule named start")
	}
	if len(p.ignored) > 0 {
		all := &syntax.Node{Op: syntax.Alt, At: p.ignored[0].At, Subs: p.ignored}
		if skipped := c.machine(all); p.Err == nil {
			c.skipped = skipped.Lexeme(false)
		}
	}
	// A rule is compiled when it is first called; calls beneath it wait in pending, so that recursion is bounded.
	start := c.call(p.defs["start"])
	for len(c.pending) > 0 && p.Err == nil {
		d := c.pending[0]
		c.pending = c.pending[1:]
		c.rules[d.name].Body = c.body(d)
	}
	return start, c.schemas.LeftOut, p.Err
}

type compiler struct {
	*parser
	ctx      context.Context
	machines map[string]*dfa.DFA // of terminals
	open     map[string]bool     // terminals whose definition is being read
	states   int                 // of all machines
	rules    map[string]*expr.Rule
	pending  []*definition
	lexemes  map[string]*expr.Expr // by source
	skipped  *expr.Expr            // a lexeme of %ignore; nil: none
	schemas  schema.Inline
}

// call returns a call of a rule.
func (c *compiler) call(d *definition) *expr.Expr {
	r, ok := c.rules[d.name]
	if !ok {
		r = &expr.Rule{Name: d.name, Body: expr.None}
		c.rules[d.name] = r
		c.pending = append(c.pending, d)
	}
	return expr.Call(r)
}

// body returns the texts of a rule.
func (c *compiler) body(d *definition) *expr.Expr {
	switch {
	case d.suffix != nil:
		whole := &syntax.Node{Op: syntax.Seq, At: d.at, Subs: []*syntax.Node{d.body, d.suffix}}
		return c.lexeme("suffix "+d.name, whole, true)
	case d.lazy:
		return c.lexeme("lazy "+d.name, d.body, true)
	}
	return d.body.Body(c.rules[d.name], c.leaf)
}

// leaf returns the texts of a part of a rule that has no parts.
func (c *compiler) leaf(n *syntax.Node) *expr.Expr {
	if c.Err == nil {
		c.Err = c.ctx.Err()
	}
	if c.Err != nil {
		return expr.None
	}
	switch n.Op {
	case syntax.Name:
		switch d := c.defs[n.Text]; {
		case d == nil:
			c.Fail(expr.ErrInvalid, n.At, "%s is not defined", n.Text)
			return expr.None
		case !d.terminal:
			return c.call(d)
		}
	case opToken:
		t, _, _ := expr.ParseTokens(n.Text)
		return c.spaced(expr.Token(t))
	case opJSON:
		e, _, err := c.schemas.Compile(c.ctx, n.Text)
		switch {
		case err != nil:
			c.Fail(err, n.At, "after %%json")
			return expr.None
		case e.None():
			c.Fail(expr.ErrInvalid, n.At, "no value satisfies the schema")
		}
		return c.spaced(e)
	case opAnd, opNot:
		const why = "%s outside of terminals; give the rule a name in upper case"
		c.Fail(expr.ErrUnsupported, n.At, why, map[syntax.Op]string{opAnd: "&", opNot: "~"}[n.Op])
		return expr.None
	}
	return c.lexeme(key(n), n, false)
}

// key returns a text that equal lexemes share.
func key(n *syntax.Node) string {
	out := string(rune('a'+n.Op)) + n.Text
	for _, s := range n.Subs {
		out += " " + key(s)
	}
	return out
}

// lexeme returns the texts of n, a regular expression, as a lexeme.
func (c *compiler) lexeme(source string, n *syntax.Node, lazy bool) *expr.Expr {
	if e, ok := c.lexemes[source]; ok {
		return e
	}
	d := c.machine(n)
	if c.Err != nil {
		return expr.None
	}
	e := d.Lexeme(lazy)
	switch {
	case d.Nullable() && lazy: // it ends at once
		e = expr.Empty
	case d.Nullable():
		e = expr.Opt(c.spaced(e))
	default:
		e = c.spaced(e)
	}
	c.lexemes[source] = e
	return e
}

// spaced returns e after any number of lexemes that are ignored.
func (c *compiler) spaced(e *expr.Expr) *expr.Expr {
	if c.skipped == nil || c.skipped.None() || e.None() {
		return e
	}
	return expr.Seq(&expr.Expr{Op: expr.OpSkip, Subs: []*expr.Expr{c.skipped}}, e)
}

// machine returns the automaton of a regular expression.
func (c *compiler) machine(n *syntax.Node) *dfa.DFA {
	r := c.regular(n)
	if c.Err != nil {
		return &dfa.DFA{}
	}
	d, err := dfa.Compile(r)
	return c.counted(d, err, n.At)
}

// counted bounds the states of all automata.
func (c *compiler) counted(d *dfa.DFA, err error, at int) *dfa.DFA {
	if err == nil {
		if c.states += d.States(); c.states > limits.GrammarPlaces {
			err = expr.ErrLimit
		}
	}
	if err != nil {
		c.Fail(err, at, "a terminal")
		return &dfa.DFA{}
	}
	return d
}

// regular returns the regular expression of a part of a terminal.
func (c *compiler) regular(n *syntax.Node) dfa.Node {
	if c.Err == nil {
		c.Err = c.ctx.Err()
	}
	if c.Err != nil {
		return dfa.Alt()
	}
	sub := func(i int) dfa.Node { return c.regular(n.Subs[i]) }
	switch n.Op {
	case syntax.Alt, syntax.Seq:
		parts := make([]dfa.Node, len(n.Subs))
		for i := range n.Subs {
			parts[i] = sub(i)
		}
		if n.Op == syntax.Alt {
			return dfa.Alt(parts...)
		}
		return dfa.Cat(parts...)
	case syntax.Repeat:
		return dfa.Repeat(sub(0), n.Min, n.Max)
	case syntax.Name:
		return c.terminal(n)
	case opText:
		return c.literal(n)
	case opRange:
		from, to := []rune(c.unquote(n.Subs[0])), []rune(c.unquote(n.Subs[1]))
		if len(from) != 1 || len(to) != 1 || to[0] < from[0] {
			c.Fail(expr.ErrInvalid, n.At, "a range is between two characters in order")
			return dfa.Alt()
		}
		return dfa.Set(expr.RuneSetOf([]rune{from[0], to[0]}))
	case opPattern:
		r, err := parsePattern(n.Text)
		if err != nil {
			c.Fail(err, n.At, "in %s", expr.Clip(n.Text))
		}
		return r
	case opAnd:
		both, err := dfa.Intersect(c.machine(n.Subs[0]), c.machine(n.Subs[1]))
		return dfa.Machine(c.counted(both, err, n.At))
	case opNot:
		not, err := dfa.Not(c.machine(n.Subs[0]))
		return dfa.Machine(c.counted(not, err, n.At))
	case opRegex:
		return c.substring(n)
	}
	c.Fail(expr.ErrUnsupported, n.At, "a token or %%json in a terminal")
	return dfa.Alt()
}

// terminal returns the regular expression of a terminal by its name.
func (c *compiler) terminal(n *syntax.Node) dfa.Node {
	d := c.defs[n.Text]
	switch {
	case d == nil:
		c.Fail(expr.ErrInvalid, n.At, "%s is not defined", n.Text)
	case !d.terminal:
		c.Fail(expr.ErrInvalid, n.At, "the rule %s stands in a terminal; its name must be in upper case", n.Text)
	case d.lazy || d.suffix != nil:
		c.Fail(expr.ErrUnsupported, n.At, "lazy and suffix of the terminal %s; they are for rules", n.Text)
	case c.open[n.Text]:
		c.Fail(expr.ErrInvalid, n.At, "the terminal %s contains itself", n.Text)
	default:
		m, ok := c.machines[n.Text]
		if !ok {
			c.open[n.Text] = true
			m = c.machine(d.body)
			c.open[n.Text] = false
			c.machines[n.Text] = m
		}
		return dfa.Machine(m)
	}
	return dfa.Alt()
}

func (c *compiler) literal(n *syntax.Node) dfa.Node {
	s := c.unquote(n)
	if !strings.HasSuffix(n.Text, "i") {
		return dfa.Literal(s)
	}
	parts := make([]dfa.Node, 0, len(s))
	for _, r := range s {
		parts = append(parts, dfa.Set(expr.RuneSetOf(folds(r))))
	}
	return dfa.Cat(parts...)
}

// unquote returns the text of a literal: JSON's escapes, and \xHH and \/.
func (c *compiler) unquote(n *syntax.Node) string {
	s := strings.TrimSuffix(n.Text, "i")
	var out string
	if err := json.Unmarshal([]byte(jsonEscapes(s)), &out); err != nil {
		c.Fail(expr.ErrInvalid, n.At, "the literal %s: %v", expr.Clip(s), err)
	}
	return out
}

// jsonEscapes replaces \xHH, \' and a tab by escapes of JSON.
func jsonEscapes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\t':
			b.WriteString(`\t`)
		case s[i] != '\\' || i+1 == len(s):
			b.WriteByte(s[i])
		case s[i+1] == 'x':
			b.WriteString(`\u00`)
			i++
		case s[i+1] == '\'':
			i++
			b.WriteByte('\'')
		default:
			b.WriteString(s[i : i+2])
			i++
		}
	}
	return b.String()
}

// substring returns the texts of %regex: the concatenation of adjacent chunks.
func (c *compiler) substring(n *syntax.Node) dfa.Node {
	var of struct {
		Chunks *[]string `json:"substring_chunks"`
		Words  *string   `json:"substring_words"`
		Chars  *string   `json:"substring_chars"`
	}
	d := json.NewDecoder(strings.NewReader(n.Text))
	d.DisallowUnknownFields()
	if err := d.Decode(&of); err != nil {
		c.Fail(expr.ErrUnsupported, n.At, "%%regex %s: %v", expr.Clip(n.Text), err)
		return dfa.Alt()
	}
	var chunks []string
	switch {
	case of.Chunks != nil:
		chunks = *of.Chunks
	case of.Words != nil:
		chunks = words(*of.Words)
	case of.Chars != nil:
		chunks = strings.Split(*of.Chars, "")
	default:
		c.Fail(expr.ErrInvalid, n.At, "%%regex without substring_chunks, substring_words or substring_chars")
	}
	if len(chunks) > limits.GrammarAlternatives {
		c.Fail(expr.ErrLimit, n.At, "%d parts of a substring; at most %d", len(chunks), limits.GrammarAlternatives)
		return dfa.Alt()
	}
	// From each chunk on: nothing, or the chunk and what may follow it.
	rest := dfa.Cat()
	alts := []dfa.Node{rest}
	for _, chunk := range slices.Backward(chunks) {
		rest = dfa.Cat(dfa.Literal(chunk), dfa.Repeat(rest, 0, 1))
		alts = append(alts, rest)
	}
	return dfa.Alt(alts...)
}
