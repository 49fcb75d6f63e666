package tags

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/grammar/ebnf"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/regex"
	"github.com/ingotml/ingot/grammar/schema"
	"github.com/ingotml/ingot/internal/limits"
)

// Compile returns the texts of a structural tag, and what the best effort of its schemas left out.
func Compile(ctx context.Context, source []byte, o schema.Options) (*expr.Expr, []string, error) {
	if len(source) > limits.GrammarSource {
		return nil, nil, expr.Errorf(expr.ErrLimit, "the structural tag has %d bytes; at most %d are allowed", len(source),
			limits.GrammarSource)
	}
	c := &compiler{ctx: ctx, options: o, schemas: schema.Inline{Options: o}}
	root, ok := c.object(source, "")
	if !ok {
		return nil, nil, c.err
	}
	var e *expr.Expr
	if _, older := root.fields["structures"]; older {
		e = c.older(root)
	} else {
		c.allow(root, "type", "format")
		e = c.format(root.fields["format"], "/format", scope{})
	}
	if c.err != nil {
		return nil, nil, c.err
	}
	return e, append(c.leftOut, c.schemas.LeftOut...), nil
}

type compiler struct {
	ctx     context.Context
	options schema.Options
	schemas schema.Inline
	leftOut []string // of grammars
	depth   int
	states  int // of all automata
	err     error
}

// object is a JSON object of the source.
type object struct {
	path   string
	fields map[string]json.RawMessage
}

// scope is what ends free text and tokens: the end of the tag around them.
type scope struct {
	texts  []string
	tokens []*expr.Tokens
}

func (c *compiler) fail(kind error, path, format string, args ...any) {
	if c.err == nil {
		if path == "" {
			path = "/"
		}
		c.err = expr.Errorf(kind, "%s: "+format, append([]any{path}, args...)...)
	}
}

func (c *compiler) object(text []byte, path string) (o object, ok bool) {
	o = object{path: path}
	if err := json.Unmarshal(text, &o.fields); err != nil || o.fields == nil {
		c.fail(expr.ErrInvalid, path, "want a JSON object instead of %s", expr.Clip(string(text)))
		return o, false
	}
	return o, true
}

// allow refuses fields that a format does not have.
func (c *compiler) allow(o object, names ...string) {
	for name := range o.fields {
		if !slices.Contains(names, name) {
			c.fail(expr.ErrUnsupported, o.path, "the field %s", expr.Clip(name))
		}
	}
}

// read reads a field. A missing one leaves its zero value, or is an error.
func read[T any](c *compiler, o object, name string, required bool) (v T) {
	text, ok := o.fields[name]
	if !ok || bytes.Equal(text, []byte("null")) {
		if required {
			c.fail(expr.ErrInvalid, o.path, "%s is missing", name)
		}
		return v
	}
	if err := json.Unmarshal(text, &v); err != nil {
		c.fail(expr.ErrInvalid, o.path, "%s: want %T instead of %s", name, v, expr.Clip(string(text)))
	}
	return v
}

// format returns the texts of a format within a scope.
func (c *compiler) format(text json.RawMessage, path string, in scope) *expr.Expr {
	if c.err == nil {
		c.err = c.ctx.Err()
	}
	if c.depth++; c.depth > limits.GrammarNesting {
		c.fail(expr.ErrLimit, path, "formats are nested more than %d levels deep", limits.GrammarNesting)
	}
	defer func() { c.depth-- }()
	if c.err != nil {
		return expr.None
	}
	o, ok := c.object(text, path)
	if !ok {
		return expr.None
	}
	kind := read[string](c, o, "type", true)
	f, ok := formats[kind]
	if !ok {
		c.fail(expr.ErrUnsupported, path, "the format %s", expr.Clip(kind))
		return expr.None
	}
	c.allow(o, append(f.fields, "type")...)
	if c.err != nil {
		return expr.None
	}
	return f.compile(c, o, in)
}

type compileFunc func(*compiler, object, scope) *expr.Expr

// formats are the kinds of formats and their fields.
var formats map[string]struct {
	fields  []string
	compile compileFunc
}

func init() {
	type kind = struct {
		fields  []string
		compile compileFunc
	}
	formats = map[string]kind{
		"const_string":         {[]string{"value"}, (*compiler).constant},
		"json_schema":          {[]string{"json_schema", "style", "any_order"}, (*compiler).jsonSchema},
		"grammar":              {[]string{"grammar"}, (*compiler).grammar},
		"regex":                {[]string{"pattern"}, (*compiler).regex},
		"any_text":             {[]string{"excludes", "max_tokens", "max_chars"}, (*compiler).anyText},
		"sequence":             {[]string{"elements"}, (*compiler).sequence},
		"or":                   {[]string{"elements"}, (*compiler).or},
		"optional":             {[]string{"content"}, repeated(0, 1)},
		"plus":                 {[]string{"content"}, repeated(1, -1)},
		"star":                 {[]string{"content"}, repeated(0, -1)},
		"repeat":               {[]string{"content", "min", "max"}, (*compiler).repeat},
		"tag":                  {[]string{"begin", "content", "end"}, (*compiler).tag},
		"triggered_tags":       {triggered("triggers", "excludes"), (*compiler).triggeredTags},
		"tags_with_separator":  {triggered("separator"), (*compiler).separated},
		"dispatch":             {[]string{"rules", "loop", "excludes"}, (*compiler).dispatch},
		"token":                {[]string{"token"}, (*compiler).token},
		"exclude_token":        {[]string{"exclude_tokens"}, (*compiler).excludeToken},
		"any_tokens":           {[]string{"exclude_tokens", "max_tokens"}, (*compiler).anyTokens},
		"token_triggered_tags": {triggered("trigger_tokens", "exclude_tokens"), (*compiler).tokenTriggeredTags},
		"token_dispatch":       {[]string{"rules", "loop", "exclude_tokens"}, (*compiler).tokenDispatch},
	}
}

func triggered(more ...string) []string {
	return append(more, "tags", "at_least_one", "stop_after_first")
}

func (c *compiler) constant(o object, _ scope) *expr.Expr {
	return expr.Text(read[string](c, o, "value", true))
}

func (c *compiler) jsonSchema(o object, _ scope) *expr.Expr {
	if style := read[string](c, o, "style", false); style != "" && style != "json" {
		c.fail(expr.ErrUnsupported, o.path, "the style %s", expr.Clip(style))
	}
	if read[bool](c, o, "any_order", false) {
		c.fail(expr.ErrUnsupported, o.path, "any_order: properties come in the schema's order")
	}
	return c.schema(o, "json_schema")
}

func (c *compiler) schema(o object, name string) *expr.Expr {
	text := read[json.RawMessage](c, o, name, true)
	if c.err != nil {
		return expr.None
	}
	e, _, err := c.schemas.Compile(c.ctx, string(text))
	switch {
	case err != nil:
		c.fail(err, o.path+"/"+name, "the schema")
		return expr.None
	case e.None():
		c.fail(expr.ErrInvalid, o.path+"/"+name, "no value satisfies the schema")
	}
	return e
}

func (c *compiler) grammar(o object, _ scope) *expr.Expr {
	e, leftOut, err := ebnf.Compile(c.ctx, read[string](c, o, "grammar", true), c.options)
	if err != nil {
		c.fail(err, o.path, "the grammar")
		return expr.None
	}
	c.leftOut = append(c.leftOut, leftOut...)
	return e
}

func (c *compiler) regex(o object, _ scope) *expr.Expr {
	e, err := regex.Compile(read[string](c, o, "pattern", true), expr.UTF8, false)
	if err != nil {
		c.fail(err, o.path, "the pattern")
		return expr.None
	}
	return e
}

func (c *compiler) elements(o object, in scope) (parts []*expr.Expr) {
	all := read[[]json.RawMessage](c, o, "elements", true)
	if len(all) == 0 {
		c.fail(expr.ErrInvalid, o.path, "elements is empty")
	}
	for i, text := range all {
		parts = append(parts, c.format(text, fmt.Sprintf("%s/elements/%d", o.path, i), in))
	}
	return parts
}

func (c *compiler) sequence(o object, in scope) *expr.Expr { return expr.Seq(c.elements(o, in)...) }
func (c *compiler) or(o object, in scope) *expr.Expr       { return expr.Alt(c.elements(o, in)...) }

func (c *compiler) content(o object, in scope) *expr.Expr {
	return c.format(o.fields["content"], o.path+"/content", in)
}

func repeated(least, most int) compileFunc {
	return func(c *compiler, o object, in scope) *expr.Expr { return expr.Repeat(c.content(o, in), least, most) }
}

func (c *compiler) repeat(o object, in scope) *expr.Expr {
	least, most := read[int](c, o, "min", true), read[int](c, o, "max", true)
	if least < 0 || most < -1 || most >= 0 && most < least {
		c.fail(expr.ErrInvalid, o.path, "min %d and max %d", least, most)
		return expr.None
	}
	if max(least, most) > limits.GrammarRepeat {
		c.fail(expr.ErrLimit, o.path, "repetition count %d; at most %d", max(least, most), limits.GrammarRepeat)
		return expr.None
	}
	return expr.Repeat(c.content(o, in), least, most)
}

// older compiles the form with structures and triggers.
func (c *compiler) older(root object) *expr.Expr {
	c.allow(root, "type", "structures", "triggers")
	triggers := read[[]string](c, root, "triggers", true)
	var tags []tag
	for i, text := range read[[]json.RawMessage](c, root, "structures", true) {
		o, ok := c.object(text, fmt.Sprintf("/structures/%d", i))
		if !ok {
			return expr.None
		}
		c.allow(o, "begin", "schema", "end")
		tags = append(tags, tag{path: o.path, begin: read[string](c, o, "begin", true), rest: expr.Seq(c.schema(o, "schema"),
			expr.Text(read[string](c, o, "end", true)))})
	}
	return c.triggers(root.path, triggers, tags, nil, loopOptions{})
}

// loopOptions say how often tags may follow free text.
type loopOptions struct{ atLeastOne, stopAfterFirst bool }

func (c *compiler) loopOptions(o object) loopOptions {
	return loopOptions{read[bool](c, o, "at_least_one", false), read[bool](c, o, "stop_after_first", false)}
}

// of returns the texts of free text and tags: first is a tag without free text before it, led one with it.
func (l loopOptions) of(first, led, free *expr.Expr) *expr.Expr {
	switch {
	case l.atLeastOne && l.stopAfterFirst:
		return first
	case l.atLeastOne:
		return expr.Seq(first, expr.Repeat(led, 0, -1), free)
	case l.stopAfterFirst:
		return expr.Alt(led, free)
	}
	return expr.Seq(expr.Repeat(led, 0, -1), free)
}

// triggers returns free text in which tags begin with triggers.
func (c *compiler) triggers(path string, triggers []string, tags []tag, excludes []string, l loopOptions) *expr.Expr {
	if len(triggers) == 0 || len(tags) == 0 {
		c.fail(expr.ErrInvalid, path, "there are no triggers or no tags")
		return expr.None
	}
	behind := make([][]*expr.Expr, len(triggers)) // by trigger: what follows it
	var first []*expr.Expr
	for _, t := range tags {
		at := -1
		for i, trigger := range triggers {
			if !strings.HasPrefix(t.begin, trigger) {
				continue
			}
			if at >= 0 {
				c.fail(expr.ErrInvalid, t.path, "the triggers %q and %q both begin the tag", triggers[at], trigger)
			}
			at = i
		}
		if at < 0 || t.token != nil {
			c.fail(expr.ErrInvalid, t.path, "no trigger begins the tag")
			return expr.None
		}
		behind[at] = append(behind[at], expr.Seq(expr.Text(t.begin[len(triggers[at]):]), t.rest))
		first = append(first, expr.Seq(expr.Text(t.begin), t.rest))
	}
	var led []*expr.Expr
	for i, trigger := range triggers {
		if len(behind[i]) > 0 {
			led = append(led, expr.Seq(c.upTo(path, trigger, triggers, excludes), expr.Alt(behind[i]...)))
		}
	}
	return l.of(expr.Alt(first...), expr.Alt(led...), c.without(path, append(slices.Clone(triggers), excludes...)))
}
