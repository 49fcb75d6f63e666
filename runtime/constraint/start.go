package constraint

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/runtime"
)

// Instead returns the tokens to generate in place of a sampled one; nil: the token itself. A token that ends the text
// after which the format starts may go on with text that the format does not allow: that end is cut off. So the model
// decides when the format starts, and the format what follows.
func (c *Constraint) Instead(id int32) []int32 {
	if c == nil || c.matcher != nil || c.newMatcher == nil {
		return nil
	}
	token := c.tokenText(id)
	text := slices.Concat(c.text, token)
	if c.behind != "" {
		_, after, found := bytes.Cut(text, []byte(c.behind))
		if !found {
			return nil
		}
		text = after
	}
	at := bytes.Index(text, []byte(c.startText))
	if at < 0 {
		return nil
	}
	rest := text[at+len(c.startText):]
	if len(rest) == 0 {
		return nil
	}
	if m, err := c.newMatcher(-1); err != nil || c.acceptRest(m, rest) == nil {
		return nil
	}
	return c.encode(token[:len(token)-len(rest)])
}

// acceptRest adds the end of a token, as other tokens.
func (c *Constraint) acceptRest(m *grammar.Matcher, rest []byte) error {
	ids := c.encode(rest)
	if len(ids) == 0 && len(rest) > 0 {
		return fmt.Errorf("%w: no tokens for %q", runtime.ErrFormat, rest)
	}
	for _, id := range ids {
		if err := m.Accept(id); err != nil {
			return fmt.Errorf("%w: %w", runtime.ErrFormat, err)
		}
	}
	return nil
}

// exactTokens returns tokens with exactly these bytes: as the tokenizer encodes them, or else the longest ones. It
// returns nil if there are none.
func (f *Formats) exactTokens(text []byte) []int32 {
	if ids, err := f.tok.Encode(context.Background(), string(text), false); err == nil {
		var all []byte
		for _, id := range ids {
			all = append(all, f.tokenBytes(id)...)
		}
		if bytes.Equal(all, text) {
			return ids
		}
	}
	var ids []int32
	v := f.vocabulary()
	for len(text) > 0 {
		best, size := int32(-1), 0
		for id := range int32(v.Size()) {
			if b := v.Bytes(id); len(b) > size && bytes.HasPrefix(text, b) {
				best, size = id, len(b)
			}
		}
		if best < 0 {
			return nil
		}
		ids, text = append(ids, best), text[size:]
	}
	return ids
}

// passBehind reports whether startText counts. It drops the text before.
func (c *Constraint) passBehind() bool {
	if c.behind == "" {
		return true
	}
	_, after, found := bytes.Cut(c.text, []byte(c.behind))
	if !found {
		c.text = c.text[max(0, len(c.text)-len(c.behind)+1):]
		return false
	}
	c.text, c.behind = after, ""
	return true
}
