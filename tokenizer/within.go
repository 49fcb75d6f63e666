package tokenizer

import (
	"context"

	"github.com/ingotml/ingot/tokenizer/fault"
)

// TextSize returns the bytes of the tokens of ids, which is about the length of their text. It does not follow from
// their number: tokens may be long. It stops counting beyond most.
func (t *Tokenizer) TextSize(ids []int32, most int) (n int) {
	for _, id := range ids {
		token, _ := t.added.token(id)
		if n += len(token); n > most {
			break
		}
	}
	return n
}

// DecodeWithin is Decode for a text of at most most bytes. A longer one is not ok, and is not made. It ends with its
// context.
func (t *Tokenizer) DecodeWithin(ctx context.Context, ids []int32, skipSpecial bool, most int) (text string, ok bool,
	err error) {
	if t.TextSize(ids, most) > most {
		return "", false, nil
	}
	const look = 1 << 10
	d := t.decoder.Start()
	for i, id := range ids {
		if id < 0 {
			return "", false, fault.Errorf(ErrToken, "decode: id %d at position %d is negative", id, i)
		}
		if token, ok := t.decodable(id, skipSpecial); ok {
			d.Token(token)
		}
		switch {
		case len(d.Out) > most: // the decoder makes more of tokens
			return "", false, nil
		case i%look == 0 && ctx.Err() != nil:
			return "", false, ctx.Err()
		}
	}
	if d.End(); len(d.Out) > most {
		return "", false, nil
	}
	return string(d.Out), true, nil
}
