package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/grammar"
)

// constraint keeps what a request says to its format. A nil one allows everything. It belongs to one goroutine at a time.
type constraint struct {
	m         *grammar.Matcher // nil before the text that the format comes after
	maskWords int              // of a mask
	ends      []int32          // end-of-sequence tokens, which may come where the text may end; none where they are ignored
	forcing   bool             // tokens without an alternative are said without asking the model

	after        string  // what the format comes after
	text         []byte  // what has come, or its end
	tokensBefore int     // tokens that may come before
	inserted     []int32 // what is said when so many have come; nil: nothing
	opening      string  // what has to come first for that; empty: nothing, or it has
	tokenText    func(id int32) []byte
	newMatcher   func(left int) (*grammar.Matcher, error) // nil: there is no format, but only what would come before
	inactive     bool                                     // nothing is kept to any more

	unbounded bool // an optional format does not fit into what is left, and need not

	// The masks that were made last, with so many tokens left, along drafts.
	maskBudget int
	maskDrafts []int32
	masks      [][]uint32
}

// constrain begins a format for an answer of at most budget tokens.
func (l *Local) constrain(ctx context.Context, r Request, budget int) (*constraint, error) {
	cuts := r.Format.After != "" && r.Format.Within > 0
	if r.Format.Kind == "" && !cuts {
		return nil, nil
	}
	if l.tok == nil {
		return nil, fmt.Errorf("%w: a format needs the text of tokens", ErrNoTokenizer)
	}
	c := &constraint{forcing: !r.wantsLogProbs(), after: r.Format.After, tokensBefore: r.Format.Within, tokenText: l.tokenBytes}
	if r.Format.Kind == "" {
		c.opening = r.Format.Open
	}
	if cuts {
		var err error
		if c.inserted, err = l.tok.Encode(r.Format.After, false); err != nil {
			return nil, err
		}
	}
	if r.Format.Kind == "" {
		return c, nil
	}
	of, err := l.formats.grammar(ctx, r.Format)
	if err != nil {
		return nil, err
	}
	v := l.formats.vocabulary()
	c.maskWords = grammar.Words(v.Size())
	c.newMatcher = func(left int) (*grammar.Matcher, error) {
		m, err := of.Matcher(v, left)
		if c.unbounded = r.Format.Optional && errors.Is(err, grammar.ErrBudget); c.unbounded {
			m, err = of.Matcher(v, -1)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		return m, nil
	}
	m, err := c.newMatcher(budget) // also where it comes later: then it must fit all the more
	if err != nil {
		return nil, err
	}
	if c.after == "" {
		c.m = m
	}
	if !r.IgnoreEOS {
		c.ends = l.eos
	}
	return c, nil
}

// bytes is what a token writes, special ones by their names.
func (l *Local) tokenBytes(id int32) []byte {
	if b, ok := l.tok.Bytes(id); ok {
		return b
	}
	text, _ := l.tok.Token(id)
	return []byte(text)
}

// mask gives the tokens that may follow, of which so many are left. Those that end the text are the runtime's to allow, whatever they
// would write.
func (c *constraint) mask(m *grammar.Matcher, left int) []uint32 {
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

// along gives the masks of the rows before and after drafts, as far as they keep to the format: one more than such drafts. left is
// how many tokens may come.
func (c *constraint) masksAlong(drafts []int32, left int) [][]uint32 {
	if c.m == nil { // up to the token that the format comes after: what follows has masks when it has been said
		n, text := 0, slices.Clone(c.text)
		for n < len(drafts) {
			if text = append(text, c.tokenText(drafts[n])...); bytes.Contains(text, []byte(c.after)) {
				break
			}
			n++
		}
		return make([][]uint32, n+1)
	}
	if c.masks == nil || c.maskBudget != left {
		c.maskBudget, c.maskDrafts, c.masks = left, nil, [][]uint32{c.mask(c.m, left)}
	}
	if n := len(drafts); n <= len(c.maskDrafts) && slices.Equal(c.maskDrafts[:n], drafts) {
		return c.masks[:min(n+1, len(c.masks))]
	}
	c.maskDrafts, c.masks = slices.Clone(drafts), c.masks[:1:1]
	m := c.m.Clone()
	for i, id := range drafts {
		if !has(c.masks[i], id) {
			break
		}
		if slices.Contains(c.ends, id) {
			c.masks = append(c.masks, nil) // nothing comes after it
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

// accept takes a token that was chosen, after which so many may come.
func (c *constraint) accept(id int32, left int) error {
	switch {
	case c == nil:
		return nil
	case c.m == nil:
		return c.acceptBefore(id, left)
	}
	c.masks = nil
	if err := c.m.Accept(id); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return nil
}

// wait takes a token before the format. What of a token comes after the text that the format waits for belongs to neither.
func (c *constraint) acceptBefore(id int32, left int) (err error) {
	c.text = append(c.text, c.tokenText(id)...)
	if c.opening != "" {
		said := bytes.TrimSpace(c.text)
		switch {
		case bytes.HasPrefix(said, []byte(c.opening)):
			c.opening = ""
		case bytes.HasPrefix([]byte(c.opening), said):
			return nil
		default:
			c.text, c.inserted, c.inactive = nil, nil, true
			return nil
		}
	}
	c.tokensBefore--
	at := bytes.Index(c.text, []byte(c.after))
	if at < 0 {
		c.text = c.text[max(0, len(c.text)-len(c.after)+1):]
		return nil
	}
	c.text, c.masks, c.inserted = nil, nil, nil
	if c.newMatcher == nil {
		c.inactive = true
		return nil
	}
	c.m, err = c.newMatcher(left)
	return err
}

// forced are the tokens that come next whatever the model thinks, where left may come.
func (c *constraint) forced(left int) (ids []int32) {
	switch {
	case c == nil:
	case c.m == nil && c.tokensBefore <= 0 && c.opening == "":
		ids, c.inserted = c.inserted, nil // once
	case c.m != nil && c.forcing:
		ids = c.m.Forced(c.matcherBudget(left))
	}
	return ids
}

// room is how many tokens the format has to fit into where so many are left; -1: any number.
func (c *constraint) matcherBudget(left int) int {
	if c.unbounded {
		return -1
	}
	return left
}

// lead are the tokens that every text of the format begins with, but for the last of those that leave nothing to add: the model
// is asked for one token at least.
func (c *constraint) prefix(left int) []int32 {
	ids := slices.Clone(c.forced(left))
	if len(ids) == 0 {
		return nil
	}
	m := c.m.Clone()
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

// over tells whether the text is complete and nothing can be added with so many tokens left, and why it ends.
func (c *constraint) ended(left int) (DoneReason, bool) {
	if c == nil || c.m == nil || !c.m.Done() {
		return "", false
	}
	bits := make([]uint32, c.maskWords)
	switch {
	case left > 0 && c.m.Mask(bits, c.matcherBudget(left)):
		return "", false
	case c.m.Mask(bits, -1):
		return DoneLength, true
	}
	return DoneStop, true
}

// lawful gives the drafts before the first that leaves the request's format.
func (g *generation) allowedDrafts(drafts []int32) []int32 {
	if g.constraint == nil {
		return drafts
	}
	return drafts[:len(g.constraint.masksAlong(drafts, g.budget))-1]
}

// lead puts what every answer begins with behind the prompt, so that it is read with it. It is told when the first token is chosen.
func (g *generation) addForcedPrefix() {
	for _, id := range g.constraint.prefix(g.budget) {
		if g.constraint.accept(id, g.budget-1) != nil {
			return
		}
		g.append(id)
		g.sampler.history = append(g.sampler.history, id)
		g.sampler.position++
		g.budget--
		g.forcedPrefix = append(g.forcedPrefix, id)
	}
}

// force says the tokens that the request's format leaves no choice about, and tells whether the stream has ended with them.
func (g *generation) emitForced() (ended bool) {
	for _, id := range slices.Clone(g.constraint.forced(g.budget)) {
		g.sampler.position++
		if g.emit(id, nil) {
			return true
		}
	}
	return false
}
