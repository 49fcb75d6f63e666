package constraint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/runtime"
)

// Constraint enforces a request's format, and the bound on tokens before it. A nil constraint allows everything. It is
// not safe for concurrent use.
type Constraint struct {
	matcher   *grammar.Matcher // nil before the format starts
	maskWords int              // length of a mask
	ends      []int32          // end-of-sequence tokens, allowed where the text may end; empty if they are ignored
	forcing   bool             // tokens without an alternative are emitted without asking the model

	startText    string  // text after which the format starts; empty: it starts at once
	behind       string  // text before which startText does not count; empty: there is none, or it has come
	text         []byte  // generated before the format; only its end, in which startText may begin
	tokensBefore int     // tokens that may still be generated before inserted is emitted
	inserted     []int32 // tokens of startText, emitted when tokensBefore is 0; nil: none, or already emitted
	opening      string  // emit inserted only if the text begins with this; empty: always, or it has begun so
	tokenText    func(id int32) []byte
	encode       func(text []byte) []int32                // tokens with exactly these bytes; nil if there are none
	newMatcher   func(left int) (*grammar.Matcher, error) // nil: no format, only a bound on the tokens before startText
	inactive     bool                                     // nothing is left to enforce

	leftOut   []string // what the format's best effort does not enforce
	unbounded bool     // an optional format does not fit into the remaining budget: follow it as far as it goes

	// The masks computed last: along maskDrafts, with maskBudget tokens left.
	maskBudget int
	maskDrafts []int32
	masks      [][]uint32
}

// Constrain returns the constraint of a request that may generate budget tokens; nil if it needs none.
func (f *Formats) Constrain(ctx context.Context, r runtime.Request, budget int) (*Constraint, error) {
	bounded := r.Format.After != "" && r.Format.Within > 0
	if r.Format.Kind == "" && !bounded {
		return nil, nil
	}
	if f.tok == nil {
		return nil, fmt.Errorf("%w: a format requires one", runtime.ErrNoTokenizer)
	}
	c := &Constraint{
		forcing: !r.WantsLogProbs(), startText: r.Format.After, tokensBefore: r.Format.Within, tokenText: f.tokenBytes,
		encode: f.exactTokens,
	}
	if c.behind = r.Format.Behind; r.Format.Kind == "" || c.behind != "" {
		c.opening = r.Format.Open
	}
	if bounded {
		var err error
		if c.inserted, err = f.tok.Encode(ctx, r.Format.After, false); err != nil {
			return nil, err
		}
	}
	if r.Format.Kind == "" {
		return c, nil
	}
	compiled, err := f.grammar(ctx, r.Owner, r.Format)
	if err != nil {
		return nil, err
	}
	c.leftOut = compiled.LeftOut()
	v := f.vocabulary()
	c.maskWords = grammar.Words(v.Size())
	c.newMatcher = func(left int) (*grammar.Matcher, error) {
		m, err := compiled.Matcher(v, left)
		if c.unbounded = r.Format.Optional && errors.Is(err, grammar.ErrBudget); c.unbounded {
			m, err = compiled.Matcher(v, -1)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", runtime.ErrFormat, err)
		}
		return m, nil
	}
	m, err := c.newMatcher(budget) // a format that starts later must fit into this budget too
	if err != nil {
		return nil, err
	}
	if c.startText == "" {
		c.matcher = m
	}
	if !r.IgnoreEOS {
		c.ends = f.ends
	}
	return c, nil
}

// tokenBytes returns the bytes of a token; of a special token, its name.
func (f *Formats) tokenBytes(id int32) []byte {
	if b, ok := f.tok.Bytes(id); ok {
		return b
	}
	text, _ := f.tok.Token(id)
	return []byte(text)
}

// mask returns the tokens that may come next, if left tokens remain. It allows end-of-sequence tokens only where the
// text may end, whatever their bytes are.
func (c *Constraint) mask(m *grammar.Matcher, left int) []uint32 {
	bits := make([]uint32, c.maskWords)
	m.Mask(bits, c.matcherBudget(left))
	for _, id := range c.ends {
		if id < 0 || int(id)/32 >= len(bits) {
			continue
		}
		if bit := uint32(1) << (id % 32); m.Done() {
			bits[id/32] |= bit
		} else {
			bits[id/32] &^= bit
		}
	}
	return bits
}

// Masks returns the masks of the rows before and after drafts, up to the first draft that violates the format: one
// mask more than there are valid drafts. left is the number of tokens that remain.
func (c *Constraint) Masks(drafts []int32, left int) [][]uint32 {
	if c.matcher == nil { // accept drafts up to the start of the format: masks apply to the tokens after it
		n, text := 0, slices.Clone(c.text) // up to its first mention, if startText does not count yet
		for n < len(drafts) {
			if text = append(text, c.tokenText(drafts[n])...); bytes.Contains(text, []byte(c.startText)) {
				break
			}
			n++
		}
		return make([][]uint32, n+1)
	}
	if c.masks == nil || c.maskBudget != left {
		c.maskBudget, c.maskDrafts, c.masks = left, nil, [][]uint32{c.mask(c.matcher, left)}
	}
	if n := len(drafts); n <= len(c.maskDrafts) && slices.Equal(c.maskDrafts[:n], drafts) {
		return c.masks[:min(n+1, len(c.masks))]
	}
	c.maskDrafts, c.masks = slices.Clone(drafts), c.masks[:1:1]
	m := c.matcher.Clone()
	for i, id := range drafts {
		if !has(c.masks[i], id) {
			break
		}
		if slices.Contains(c.ends, id) {
			c.masks = append(c.masks, nil) // no token follows it
			break
		}
		if m.Accept(id) != nil {
			break
		}
		c.masks = append(c.masks, c.mask(m, left-i-1))
	}
	return c.masks
}

func has(bits []uint32, id int32) bool {
	return id >= 0 && int(id)/32 < len(bits) && bits[id/32]>>(id%32)&1 != 0
}

// Accept adds a sampled token, after which left tokens remain.
func (c *Constraint) Accept(id int32, left int) error {
	switch {
	case c == nil:
		return nil
	case c.matcher == nil:
		return c.acceptBefore(id, left)
	}
	c.masks = nil
	if err := c.matcher.Accept(id); err != nil {
		return fmt.Errorf("%w: %w", runtime.ErrFormat, err)
	}
	return nil
}

// acceptBefore adds a token before the format. Of a token that extends beyond the text after which the format starts,
// the rest is text of the format.
func (c *Constraint) acceptBefore(id int32, left int) (err error) {
	c.text = append(c.text, c.tokenText(id)...)
	if c.opening != "" {
		generated := bytes.TrimSpace(c.text)
		switch {
		case bytes.HasPrefix(generated, []byte(c.opening)):
			c.opening = ""
		case bytes.HasPrefix([]byte(c.opening), generated):
			return nil
		case c.behind != "":
			c.opening, c.behind = "", ""
		default:
			c.text, c.inserted, c.inactive = nil, nil, true
			return nil
		}
	}
	c.tokensBefore--
	if !c.passBehind() {
		return nil
	}
	at := bytes.Index(c.text, []byte(c.startText))
	if at < 0 {
		c.text = c.text[max(0, len(c.text)-len(c.startText)+1):]
		return nil
	}
	rest := c.text[at+len(c.startText):]
	c.text, c.masks, c.inserted = nil, nil, nil
	if c.newMatcher == nil {
		c.inactive = true
		return nil
	}
	if c.matcher, err = c.newMatcher(left); err != nil {
		return err
	}
	return c.acceptRest(c.matcher, rest)
}

// Forced returns the tokens that must come next, whatever the logits are, if left tokens remain.
func (c *Constraint) Forced(left int) (ids []int32) {
	switch {
	case c == nil:
	case c.matcher == nil && c.tokensBefore <= 0 && c.opening == "":
		ids, c.inserted = c.inserted, nil // only once
	case c.matcher != nil && c.forcing:
		ids = c.matcher.Forced(c.matcherBudget(left))
	}
	return ids
}

// matcherBudget returns the number of tokens that the format has to fit into; -1: any number.
func (c *Constraint) matcherBudget(left int) int {
	if c.unbounded {
		return -1
	}
	return left
}

// Prefix returns the forced tokens at the start of the format. If they complete it, it leaves out the last one, because
// the model samples at least one token.
func (c *Constraint) Prefix(left int) []int32 {
	ids := slices.Clone(c.Forced(left))
	if len(ids) == 0 {
		return nil
	}
	m := c.matcher.Clone()
	for i, id := range ids {
		if m.Accept(id) != nil {
			return ids[:i]
		}
	}
	if m.Done() && !m.Mask(make([]uint32, c.maskWords), c.matcherBudget(left-len(ids))) {
		ids = ids[:len(ids)-1]
	}
	return ids
}

// Ended reports whether the text is complete and cannot continue with left tokens, and the finish reason.
func (c *Constraint) Ended(left int) (runtime.DoneReason, bool) {
	if c == nil || c.matcher == nil || !c.matcher.Done() {
		return "", false
	}
	bits := make([]uint32, c.maskWords)
	switch {
	case left > 0 && c.matcher.Mask(bits, c.matcherBudget(left)):
		return "", false
	case c.matcher.Mask(bits, -1):
		return runtime.DoneLength, true
	}
	return runtime.DoneStop, true
}

// Allowed returns the drafts before the first one that violates the format. left is the number of tokens that remain.
func (c *Constraint) Allowed(drafts []int32, left int) []int32 {
	if c == nil {
		return drafts
	}
	return drafts[:len(c.Masks(drafts, left))-1]
}

// LeftOut returns what the format's best effort does not enforce, each with its location in the schema.
func (c *Constraint) LeftOut() []string {
	if c == nil {
		return nil
	}
	return c.leftOut
}

// Over reports whether nothing is left to enforce.
func (c *Constraint) Over() bool { return c != nil && c.inactive }
