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
	m     *grammar.Matcher // nil before the text that the format comes after
	words int              // of a mask
	ends  []int32          // end-of-sequence tokens, which may come where the text may end; none where they are ignored
	force bool             // tokens without an alternative are said without asking the model

	after  string  // what the format comes after
	before []byte  // what has come, or its end
	within int     // tokens that may come before
	cut    []int32 // what is said when so many have come; nil: nothing
	open   string  // what has to come first for that; empty: nothing, or it has
	text   func(id int32) []byte
	begin  func(left int) (*grammar.Matcher, error) // nil: there is no format, but only what would come before
	idle   bool                                     // nothing is kept to any more

	endless bool // an optional format does not fit into what is left, and need not

	// The masks that were made last, with so many tokens left, along drafts.
	left  int
	ahead []int32
	masks [][]uint32
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
	c := &constraint{force: !r.wantsLogProbs(), after: r.Format.After, within: r.Format.Within, text: l.bytes}
	if r.Format.Kind == "" {
		c.open = r.Format.Open
	}
	if cuts {
		var err error
		if c.cut, err = l.tok.Encode(r.Format.After, false); err != nil {
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
	c.words = grammar.Words(v.Size())
	c.begin = func(left int) (*grammar.Matcher, error) {
		m, err := of.Matcher(v, left)
		if c.endless = r.Format.Optional && errors.Is(err, grammar.ErrBudget); c.endless {
			m, err = of.Matcher(v, -1)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		return m, nil
	}
	m, err := c.begin(budget) // also where it comes later: then it must fit all the more
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
func (l *Local) bytes(id int32) []byte {
	if b, ok := l.tok.Bytes(id); ok {
		return b
	}
	text, _ := l.tok.Token(id)
	return []byte(text)
}

// mask gives the tokens that may follow, of which so many are left. Those that end the text are the runtime's to allow, whatever they
// would write.
func (c *constraint) mask(m *grammar.Matcher, left int) []uint32 {
	bits := make([]uint32, c.words)
	m.Mask(bits, c.room(left))
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
func (c *constraint) along(drafts []int32, left int) [][]uint32 {
	if c.m == nil { // up to the token that the format comes after: what follows has masks when it has been said
		n, text := 0, slices.Clone(c.before)
		for n < len(drafts) {
			if text = append(text, c.text(drafts[n])...); bytes.Contains(text, []byte(c.after)) {
				break
			}
			n++
		}
		return make([][]uint32, n+1)
	}
	if c.masks == nil || c.left != left {
		c.left, c.ahead, c.masks = left, nil, [][]uint32{c.mask(c.m, left)}
	}
	if n := len(drafts); n <= len(c.ahead) && slices.Equal(c.ahead[:n], drafts) {
		return c.masks[:min(n+1, len(c.masks))]
	}
	c.ahead, c.masks = slices.Clone(drafts), c.masks[:1:1]
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
		return c.wait(id, left)
	}
	c.masks = nil
	if err := c.m.Accept(id); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return nil
}

// wait takes a token before the format. What of a token comes after the text that the format waits for belongs to neither.
func (c *constraint) wait(id int32, left int) (err error) {
	c.before = append(c.before, c.text(id)...)
	if c.open != "" {
		said := bytes.TrimSpace(c.before)
		switch {
		case bytes.HasPrefix(said, []byte(c.open)):
			c.open = ""
		case bytes.HasPrefix([]byte(c.open), said):
			return nil
		default:
			c.before, c.cut, c.idle = nil, nil, true
			return nil
		}
	}
	c.within--
	at := bytes.Index(c.before, []byte(c.after))
	if at < 0 {
		c.before = c.before[max(0, len(c.before)-len(c.after)+1):]
		return nil
	}
	c.before, c.masks, c.cut = nil, nil, nil
	if c.begin == nil {
		c.idle = true
		return nil
	}
	c.m, err = c.begin(left)
	return err
}

// forced are the tokens that come next whatever the model thinks, where left may come.
func (c *constraint) forced(left int) (ids []int32) {
	switch {
	case c == nil:
	case c.m == nil && c.within <= 0 && c.open == "":
		ids, c.cut = c.cut, nil // once
	case c.m != nil && c.force:
		ids = c.m.Forced(c.room(left))
	}
	return ids
}

// room is how many tokens the format has to fit into where so many are left; -1: any number.
func (c *constraint) room(left int) int {
	if c.endless {
		return -1
	}
	return left
}

// lead are the tokens that every text of the format begins with, but for the last of those that leave nothing to add: the model
// is asked for one token at least.
func (c *constraint) lead(left int) []int32 {
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
	if m.Done() && !m.Mask(make([]uint32, c.words), c.room(left-len(ids))) {
		ids = ids[:len(ids)-1]
	}
	return ids
}

// over tells whether the text is complete and nothing can be added with so many tokens left, and why it ends.
func (c *constraint) over(left int) (DoneReason, bool) {
	if c == nil || c.m == nil || !c.m.Done() {
		return "", false
	}
	bits := make([]uint32, c.words)
	switch {
	case left > 0 && c.m.Mask(bits, c.room(left)):
		return "", false
	case c.m.Mask(bits, -1):
		return DoneLength, true
	}
	return DoneStop, true
}

// lawful gives the drafts before the first that leaves the request's format.
func (g *generation) lawful(drafts []int32) []int32 {
	if g.rules == nil {
		return drafts
	}
	return drafts[:len(g.rules.along(drafts, g.budget))-1]
}

// lead puts what every answer begins with behind the prompt, so that it is read with it. It is told when the first token is chosen.
func (g *generation) lead() {
	for _, id := range g.rules.lead(g.budget) {
		if g.rules.accept(id, g.budget-1) != nil {
			return
		}
		g.append(id)
		g.sampler.history = append(g.sampler.history, id)
		g.sampler.drawn++
		g.budget--
		g.leading = append(g.leading, id)
	}
}

// force says the tokens that the request's format leaves no choice about, and tells whether the stream has ended with them.
func (g *generation) force() (ended bool) {
	for _, id := range slices.Clone(g.rules.forced(g.budget)) {
		g.sampler.drawn++
		if g.emit(id, nil) {
			return true
		}
	}
	return false
}
