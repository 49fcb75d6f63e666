package tags

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
)

// tag is a tag: its beginning, a text or a token, and what follows it.
type tag struct {
	path  string
	begin string
	token *expr.Tokens // nil: begin is a text
	rest  *expr.Expr
}

func (t tag) expr() *expr.Expr {
	if t.token != nil {
		return expr.Seq(expr.Token(t.token), t.rest)
	}
	return expr.Seq(expr.Text(t.begin), t.rest)
}

func (c *compiler) tag(o object, _ scope) *expr.Expr { return c.readTag(o).expr() }

func (c *compiler) readTag(o object) tag {
	t := tag{path: o.path}
	if begin := o.fields["begin"]; bytes.HasPrefix(begin, []byte("{")) {
		t.token = c.tokenObject(begin, o.path+"/begin")
	} else {
		t.begin = read[string](c, o, "begin", true)
	}
	var in scope
	var end *expr.Expr
	switch text := o.fields["end"]; {
	case bytes.HasPrefix(text, []byte("{")):
		token := c.tokenObject(text, o.path+"/end")
		in.tokens = []*expr.Tokens{token}
		end = expr.Token(token)
	case bytes.HasPrefix(text, []byte("[")):
		in.texts = read[[]string](c, o, "end", true)
		if len(in.texts) == 0 {
			c.fail(expr.ErrInvalid, o.path, "end is empty")
		}
		end = expr.Words(in.texts)
	default:
		in.texts = []string{read[string](c, o, "end", true)}
		end = expr.Text(in.texts[0])
	}
	for i := 0; i < len(in.texts); i++ { // without an end, free text ends with the text around it
		if in.texts[i] == "" {
			in.texts = append(in.texts[:i:i], in.texts[i+1:]...)
		}
	}
	t.rest = expr.Seq(c.content(o, in), end)
	return t
}

func (c *compiler) readTags(o object) (all []tag) {
	for i, text := range read[[]json.RawMessage](c, o, "tags", true) {
		t, ok := c.object(text, fmt.Sprintf("%s/tags/%d", o.path, i))
		if !ok {
			return nil
		}
		if kind := read[string](c, t, "type", false); kind != "" && kind != "tag" {
			c.fail(expr.ErrInvalid, t.path, "want a tag instead of %s", expr.Clip(kind))
		}
		c.allow(t, "type", "begin", "content", "end")
		if c.err != nil {
			return nil
		}
		all = append(all, c.readTag(t))
	}
	if len(all) == 0 {
		c.fail(expr.ErrInvalid, o.path, "tags is empty")
	}
	return all
}

func (c *compiler) triggeredTags(o object, in scope) *expr.Expr {
	excludes := append(read[[]string](c, o, "excludes", false), in.texts...)
	return c.triggers(o.path, read[[]string](c, o, "triggers", true), c.readTags(o), excludes, c.loopOptions(o))
}

func (c *compiler) separated(o object, _ scope) *expr.Expr {
	var all []*expr.Expr
	for _, t := range c.readTags(o) {
		all = append(all, t.expr())
	}
	one, l := expr.Alt(all...), c.loopOptions(o)
	e := one
	if !l.stopAfterFirst {
		separator := expr.Text(read[string](c, o, "separator", true))
		e = expr.Seq(one, expr.Repeat(expr.Seq(separator, one), 0, -1))
	}
	if !l.atLeastOne {
		e = expr.Opt(e)
	}
	return e
}

// Tokens.

// tokenOf reads the id or the name of a token.
func (c *compiler) tokenOf(text json.RawMessage, path string, into *expr.Tokens) {
	var id int32
	var name string
	switch {
	case json.Unmarshal(text, &id) == nil && id >= 0:
		into.IDs = append(into.IDs, expr.IDSpan{First: id, Last: id})
	case json.Unmarshal(text, &name) == nil && name != "":
		into.Names = append(into.Names, name)
	default:
		c.fail(expr.ErrInvalid, path, "%s is not the id or the name of a token", expr.Clip(string(text)))
	}
}

func (c *compiler) tokensOf(o object, name string, required bool) *expr.Tokens {
	t := &expr.Tokens{}
	for _, text := range read[[]json.RawMessage](c, o, name, required) {
		c.tokenOf(text, o.path+"/"+name, t)
	}
	return t
}

// tokenObject reads {"type": "token", "token": ...}.
func (c *compiler) tokenObject(text json.RawMessage, path string) *expr.Tokens {
	t := &expr.Tokens{}
	if o, ok := c.object(text, path); ok {
		if kind := read[string](c, o, "type", true); kind != "token" {
			c.fail(expr.ErrInvalid, path, "want a token instead of %s", expr.Clip(kind))
		}
		c.allow(o, "type", "token")
		c.tokenOf(o.fields["token"], path, t)
	}
	return t
}

func (c *compiler) token(o object, _ scope) *expr.Expr {
	t := &expr.Tokens{}
	c.tokenOf(o.fields["token"], o.path, t)
	return expr.Token(t)
}

// others returns all tokens but those of sets.
func others(sets ...*expr.Tokens) *expr.Expr {
	t := &expr.Tokens{Not: true}
	for _, s := range sets {
		t.Names, t.IDs = append(t.Names, s.Names...), append(t.IDs, s.IDs...)
	}
	return expr.Token(t)
}

func (c *compiler) excludeToken(o object, in scope) *expr.Expr {
	return others(append(in.tokens, c.tokensOf(o, "exclude_tokens", false))...)
}

func (c *compiler) anyTokens(o object, in scope) *expr.Expr {
	most := -1
	if n := read[*int](c, o, "max_tokens", false); n != nil {
		if most = *n; most < 0 || most > limits.GrammarRepeat {
			c.fail(expr.ErrInvalid, o.path, "max_tokens %d", most)
		}
	}
	return expr.Repeat(c.excludeToken(o, in), 0, most)
}

func (c *compiler) tokenTriggeredTags(o object, in scope) *expr.Expr {
	triggers := c.tokensOf(o, "trigger_tokens", true)
	var all []*expr.Expr
	for _, t := range c.readTags(o) {
		if t.token == nil {
			c.fail(expr.ErrInvalid, t.path, "the tag begins with a text instead of a token")
		}
		all = append(all, t.expr())
	}
	free := expr.Repeat(others(append(in.tokens, triggers, c.tokensOf(o, "exclude_tokens", false))...), 0, -1)
	one := expr.Alt(all...)
	return c.loopOptions(o).of(one, expr.Seq(free, one), free)
}

// dispatchRule is [trigger, format].
type dispatchRule struct {
	key    json.RawMessage
	format *expr.Expr
}

func (c *compiler) rules(o object, in scope) (all []dispatchRule) {
	for i, text := range read[[]json.RawMessage](c, o, "rules", true) {
		var pair []json.RawMessage
		if c.unmarshal(text, &pair); len(pair) != 2 {
			c.fail(expr.ErrInvalid, o.path, "rule %d is not [trigger, format]", i)
			return nil
		}
		all = append(all, dispatchRule{pair[0], c.format(pair[1], fmt.Sprintf("%s/rules/%d/1", o.path, i), in)})
	}
	if len(all) == 0 {
		c.fail(expr.ErrInvalid, o.path, "rules is empty")
	}
	return all
}

// unmarshal reads a value into v, which keeps its zero value if it has another type.
func (c *compiler) unmarshal(text json.RawMessage, v any) { _ = json.Unmarshal(text, v) }

// looping reports whether free text goes on behind a rule's format.
func (c *compiler) looping(o object) bool {
	loop := read[*bool](c, o, "loop", false)
	return loop == nil || *loop
}

func (c *compiler) tokenDispatch(o object, in scope) *expr.Expr {
	triggers := &expr.Tokens{}
	var all []*expr.Expr
	for _, r := range c.rules(o, in) {
		one := &expr.Tokens{}
		c.tokenOf(r.key, o.path, one)
		c.tokenOf(r.key, o.path, triggers)
		all = append(all, expr.Seq(expr.Token(one), r.format))
	}
	free := expr.Repeat(others(append(in.tokens, triggers, c.tokensOf(o, "exclude_tokens", false))...), 0, -1)
	one := expr.Alt(all...)
	return loopOptions{stopAfterFirst: !c.looping(o)}.of(one, expr.Seq(free, one), free)
}
