package tags

import (
	"slices"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
)

// literals is any of some texts.
func literals(texts []string) dfa.Node {
	var all []dfa.Node
	for _, t := range texts {
		all = append(all, dfa.Literal(t))
	}
	return dfa.Alt(all...)
}

// containing returns the texts that contain one of words.
func containing(words []string) (*dfa.DFA, error) {
	return dfa.Compile(dfa.Cat(dfa.Everything(), literals(words), dfa.Everything()))
}

// valid refuses empty words, which every text contains, and too many.
func (c *compiler) valid(path string, words []string) bool {
	if slices.Contains(words, "") {
		c.fail(expr.ErrInvalid, path, "an empty trigger or exclusion")
	}
	if len(words) > limits.GrammarAlternatives {
		c.fail(expr.ErrLimit, path, "%d triggers and exclusions; at most %d", len(words), limits.GrammarAlternatives)
	}
	return c.err == nil
}

// texts returns the expression of an automaton.
func (c *compiler) texts(path string, d *dfa.DFA, err error) *expr.Expr {
	if err == nil {
		if c.states += d.States(); c.states > limits.GrammarPlaces {
			err = expr.ErrLimit
		}
	}
	if err != nil {
		c.fail(err, path, "free text")
		return expr.None
	}
	return d.Texts()
}

// free returns the texts that contain none of words.
func free(words []string) (*dfa.DFA, error) {
	if len(words) == 0 {
		return dfa.Any(), nil
	}
	with, err := containing(words)
	if err != nil {
		return nil, err
	}
	return dfa.Not(with)
}

func (c *compiler) without(path string, words []string) *expr.Expr {
	if !c.valid(path, words) {
		return expr.None
	}
	d, err := free(words)
	return c.texts(path, d, err)
}

// upTo returns the texts that end with word and contain none of all before, and none of excludes.
func (c *compiler) upTo(path, word string, all, excludes []string) *expr.Expr {
	if !c.valid(path, append(slices.Clone(all), excludes...)) {
		return expr.None
	}
	d, err := dfa.Compile(dfa.Cat(dfa.Everything(), dfa.Literal(word)))
	if err == nil {
		var early *dfa.DFA
		early, err = dfa.Compile(dfa.Cat(dfa.Everything(), literals(all), dfa.Set(expr.EveryRune), dfa.Everything()))
		if err == nil {
			d, err = dfa.Minus(d, early)
		}
	}
	if err == nil && len(excludes) > 0 {
		var with *dfa.DFA
		if with, err = containing(excludes); err == nil {
			d, err = dfa.Minus(d, with)
		}
	}
	return c.texts(path, d, err)
}

func (c *compiler) anyText(o object, in scope) *expr.Expr {
	if _, ok := o.fields["max_tokens"]; ok && read[*int](c, o, "max_tokens", false) != nil {
		c.fail(expr.ErrUnsupported, o.path, "max_tokens of any_text; use max_chars")
	}
	words := append(read[[]string](c, o, "excludes", false), in.texts...)
	most := read[*int](c, o, "max_chars", false)
	if most == nil {
		return c.without(o.path, words)
	}
	if *most < 0 || *most > limits.GrammarRepeat {
		c.fail(expr.ErrInvalid, o.path, "max_chars %d", *most)
	}
	if !c.valid(o.path, words) {
		return expr.None
	}
	if len(words) == 0 {
		return expr.Repeat(expr.UTF8(expr.EveryRune), 0, *most)
	}
	d, err := free(words)
	if err == nil {
		d, err = dfa.Length(d, 0, *most)
	}
	return c.texts(o.path, d, err)
}

// dispatch returns free text in which each rule's text is followed by its format.
func (c *compiler) dispatch(o object, in scope) *expr.Expr {
	var words []string
	var behind []*expr.Expr
	for _, r := range c.rules(o, in) {
		word := ""
		if c.unmarshal(r.key, &word); word == "" {
			c.fail(expr.ErrInvalid, o.path, "a rule is [text, format]")
			return expr.None
		}
		words, behind = append(words, word), append(behind, r.format)
	}
	excludes := append(read[[]string](c, o, "excludes", false), in.texts...)
	var led []*expr.Expr
	for i, word := range words {
		led = append(led, expr.Seq(c.upTo(o.path, word, words, excludes), behind[i]))
	}
	l := loopOptions{stopAfterFirst: !c.looping(o)}
	return l.of(nil, expr.Alt(led...), c.without(o.path, append(slices.Clone(words), excludes...)))
}
