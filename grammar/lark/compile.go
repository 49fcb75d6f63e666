package lark

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/schema"
	"github.com/ingotml/ingot/internal/limits"
)

// Compile returns the texts of a grammar, and what the best effort of its schemas left out. Its start rule is the one
// named start.
func Compile(ctx context.Context, source string, o schema.Options) (*expr.Expr, []string, error) {
	if err := expr.CheckSource(source); err != nil {
		return nil, nil, err
	}
	p := &parser{source: source, defs: map[string]*definition{}}
	if p.parse(); p.err != nil {
		return nil, nil, p.err
	}
	c := &compiler{parser: p, ctx: ctx, machines: map[string]*dfa.DFA{}, open: map[string]bool{},
		rules: map[string]*expr.Rule{}, lexemes: map[string]*expr.Expr{}, schemas: schema.Inline{Options: o}}
	if p.defs["start"] == nil || p.defs["start"].terminal {
		return nil, nil, expr.Errorf(expr.ErrInvalid, "the grammar has no rule named start")
	}
	if len(p.ignored) > 0 {
		all := &node{op: opAlt, at: p.ignored[0].at, subs: p.ignored}
		if skipped := c.machine(all); p.err == nil {
			c.skipped = skipped.Lexeme(false)
		}
	}
	// A rule is compiled when it is first called; calls beneath it wait in pending, so that recursion is bounded.
	start := c.call(p.defs["start"], 0)
	for len(c.pending) > 0 && p.err == nil {
		d := c.pending[0]
		c.pending = c.pending[1:]
		c.rules[d.name].Body = c.body(d)
	}
	return start, c.schemas.LeftOut, p.err
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
func (c *compiler) call(d *definition, at int) *expr.Expr {
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
		return c.lexeme("suffix "+d.name, &node{op: opSeq, at: d.at, subs: []*node{d.body, d.suffix}}, true)
	case d.lazy:
		return c.lexeme("lazy "+d.name, d.body, true)
	}
	alts := []*node{d.body}
	if d.body.op == opAlt {
		alts = d.body.subs
	}
	parts := make([]*expr.Expr, len(alts))
	for i, n := range alts {
		parts[i] = c.expr(n)
	}
	return expr.LeftRecursive(c.rules[d.name], parts)
}

// expr returns the texts of a part of a rule.
func (c *compiler) expr(n *node) *expr.Expr {
	if c.err == nil {
		c.err = c.ctx.Err()
	}
	if c.err != nil {
		return expr.None
	}
	switch n.op {
	case opAlt, opSeq:
		parts := make([]*expr.Expr, len(n.subs))
		for i, s := range n.subs {
			parts[i] = c.expr(s)
		}
		if n.op == opAlt {
			return expr.Alt(parts...)
		}
		return expr.Seq(parts...)
	case opRepeat:
		return expr.Repeat(c.expr(n.subs[0]), n.min, n.max)
	case opName:
		switch d := c.defs[n.text]; {
		case d == nil:
			c.fail(expr.ErrInvalid, n.at, "%s is not defined", n.text)
			return expr.None
		case !d.terminal:
			return c.call(d, n.at)
		}
	case opToken:
		t, _, _ := expr.ParseTokens(n.text)
		return c.spaced(expr.Token(t))
	case opJSON:
		e, _, err := c.schemas.Compile(c.ctx, n.text)
		switch {
		case err != nil:
			c.fail(err, n.at, "after %%json")
			return expr.None
		case e.None():
			c.fail(expr.ErrInvalid, n.at, "no value satisfies the schema")
		}
		return c.spaced(e)
	case opAnd, opNot:
		const why = "%s outside of terminals; give the rule a name in upper case"
		c.fail(expr.ErrUnsupported, n.at, why, map[op]string{opAnd: "&", opNot: "~"}[n.op])
		return expr.None
	}
	return c.lexeme(n.source(), n, false)
}

// source returns a text that equal lexemes share.
func (n *node) source() string {
	out := string(rune('a'+n.op)) + n.text
	for _, s := range n.subs {
		out += " " + s.source()
	}
	return out
}

// lexeme returns the texts of n, a regular expression, as a lexeme.
func (c *compiler) lexeme(key string, n *node, lazy bool) *expr.Expr {
	if e, ok := c.lexemes[key]; ok {
		return e
	}
	d := c.machine(n)
	if c.err != nil {
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
	c.lexemes[key] = e
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
func (c *compiler) machine(n *node) *dfa.DFA {
	r := c.regular(n)
	if c.err != nil {
		return &dfa.DFA{}
	}
	d, err := dfa.Compile(r)
	return c.counted(d, err, n.at)
}

// counted bounds the states of all automata.
func (c *compiler) counted(d *dfa.DFA, err error, at int) *dfa.DFA {
	if err == nil {
		if c.states += d.States(); c.states > limits.GrammarPlaces {
			err = expr.ErrLimit
		}
	}
	if err != nil {
		c.fail(err, at, "a terminal")
		return &dfa.DFA{}
	}
	return d
}

// regular returns the regular expression of a part of a terminal.
func (c *compiler) regular(n *node) dfa.Node {
	if c.err == nil {
		c.err = c.ctx.Err()
	}
	if c.err != nil {
		return dfa.Alt()
	}
	sub := func(i int) dfa.Node { return c.regular(n.subs[i]) }
	switch n.op {
	case opAlt, opSeq:
		parts := make([]dfa.Node, len(n.subs))
		for i := range n.subs {
			parts[i] = sub(i)
		}
		if n.op == opAlt {
			return dfa.Alt(parts...)
		}
		return dfa.Cat(parts...)
	case opRepeat:
		return dfa.Repeat(sub(0), n.min, n.max)
	case opName:
		return c.terminal(n)
	case opText:
		return c.literal(n)
	case opRange:
		from, to := []rune(c.unquote(n.subs[0])), []rune(c.unquote(n.subs[1]))
		if len(from) != 1 || len(to) != 1 || to[0] < from[0] {
			c.fail(expr.ErrInvalid, n.at, "a range is between two characters in order")
			return dfa.Alt()
		}
		return dfa.Set(expr.RuneSetOf([]rune{from[0], to[0]}))
	case opPattern:
		r, err := parsePattern(n.text)
		if err != nil {
			c.fail(err, n.at, "in %s", expr.Clip(n.text))
		}
		return r
	case opAnd:
		both, err := dfa.Intersect(c.machine(n.subs[0]), c.machine(n.subs[1]))
		return dfa.Machine(c.counted(both, err, n.at))
	case opNot:
		not, err := dfa.Not(c.machine(n.subs[0]))
		return dfa.Machine(c.counted(not, err, n.at))
	case opRegex:
		return c.substring(n)
	}
	c.fail(expr.ErrUnsupported, n.at, "a token or %%json in a terminal")
	return dfa.Alt()
}

// terminal returns the regular expression of a terminal by its name.
func (c *compiler) terminal(n *node) dfa.Node {
	d := c.defs[n.text]
	switch {
	case d == nil:
		c.fail(expr.ErrInvalid, n.at, "%s is not defined", n.text)
	case !d.terminal:
		c.fail(expr.ErrInvalid, n.at, "the rule %s stands in a terminal; its name must be in upper case", n.text)
	case d.lazy || d.suffix != nil:
		c.fail(expr.ErrUnsupported, n.at, "lazy and suffix of the terminal %s; they are for rules", n.text)
	case c.open[n.text]:
		c.fail(expr.ErrInvalid, n.at, "the terminal %s contains itself", n.text)
	default:
		m, ok := c.machines[n.text]
		if !ok {
			c.open[n.text] = true
			m = c.machine(d.body)
			c.open[n.text] = false
			c.machines[n.text] = m
		}
		return dfa.Machine(m)
	}
	return dfa.Alt()
}

func (c *compiler) literal(n *node) dfa.Node {
	s := c.unquote(n)
	if !strings.HasSuffix(n.text, "i") {
		return dfa.Literal(s)
	}
	parts := make([]dfa.Node, 0, len(s))
	for _, r := range s {
		parts = append(parts, dfa.Set(expr.RuneSetOf(folds(r))))
	}
	return dfa.Cat(parts...)
}

// unquote returns the text of a literal: JSON's escapes, and \xHH and \/.
func (c *compiler) unquote(n *node) string {
	s := strings.TrimSuffix(n.text, "i")
	var out string
	if err := json.Unmarshal([]byte(jsonEscapes(s)), &out); err != nil {
		c.fail(expr.ErrInvalid, n.at, "the literal %s: %v", expr.Clip(s), err)
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
func (c *compiler) substring(n *node) dfa.Node {
	var of struct {
		Chunks *[]string `json:"substring_chunks"`
		Words  *string   `json:"substring_words"`
		Chars  *string   `json:"substring_chars"`
	}
	d := json.NewDecoder(strings.NewReader(n.text))
	d.DisallowUnknownFields()
	if err := d.Decode(&of); err != nil {
		c.fail(expr.ErrUnsupported, n.at, "%%regex %s: %v", expr.Clip(n.text), err)
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
		c.fail(expr.ErrInvalid, n.at, "%%regex without substring_chunks, substring_words or substring_chars")
	}
	if len(chunks) > limits.GrammarAlternatives {
		c.fail(expr.ErrLimit, n.at, "%d parts of a substring; at most %d", len(chunks), limits.GrammarAlternatives)
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
