package tokenizer

import (
	"context"
	"errors"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/decode"
	"github.com/ingotml/ingot/tokenizer/encode"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/normalize"
	"github.com/ingotml/ingot/tokenizer/pretokenize"
)

// Tokenizer is a loaded tokenizer.json or tokenizer.model. It is immutable and safe for concurrent use.
type Tokenizer struct {
	model      encode.Model
	added      *addedVocabulary
	normalizer normalize.Normalizer // nil: none
	pre        pretokenize.Steps    // nil: none
	template   template             // nil: none
	decoder    decode.Decoder
	bos, eos   int32 // -1: none
}

// Encode returns the ids of text. With special it includes what the post-processor adds (BOS, EOS). Special tokens in
// the text are recognized either way. The empty text has no ids of its own. It ends with its context, and returns
// ErrTimeout if the text takes too much work, or ErrToken if the unk_token is not in the vocabulary.
func (t *Tokenizer) Encode(ctx context.Context, text string, special bool) ([]int32, error) {
	w := work.Start(ctx, encodeLimits(len(text)))
	defer w.Done()
	err := w.Look()
	var ids []int32
	if err == nil {
		ids, err = t.encode(w, text)
	}
	switch {
	case errors.Is(err, work.ErrLimit):
		return nil, fault.Errorf(ErrTimeout, "tokenizer: a text of %d bytes: %v", len(text), err)
	case err != nil:
		return nil, err
	}
	return t.template.apply(ids, special), nil
}

// encodeLimits bound the work of encoding a text of n bytes.
func encodeLimits(n int) work.Limits {
	return work.Limits{Units: limits.EncodeWork + limits.EncodeWorkPerByte*int64(n)}
}

// encode returns the ids of text alone.
func (t *Tokenizer) encode(w *work.Meter, text string) ([]int32, error) {
	text = chars.ValidText(text)
	e := t.model.Encoder()
	defer e.Release()
	ids := make([]int32, 0, len(text)/4+4)
	token := func(id int32) error {
		ids = append(ids, id)
		return nil
	}
	piece := func(s string, _ bool) (err error) {
		ids, err = e.Append(w, ids, s)
		return err
	}
	words := t.pre.Chain(w, len(text), piece)
	normalized := func(s string, first bool) error { return t.added.split(w, t.added.normalized, s, first, words, token) }
	plain := normalized
	if t.normalizer != nil {
		pass := normalize.NewPass(w, len(text))
		plain = func(s string, first bool) error {
			pass.Head = first
			s, err := pass.Take(t.normalizer, s)
			if err != nil || s == "" {
				return err
			}
			return normalized(s, pass.Head)
		}
	}
	return ids, t.added.split(w, t.added.plain, text, true, plain, token)
}

// Decode returns the text of ids. skipSpecial leaves out special tokens. Ids that the vocabulary does not have add
// nothing, as in the reference, because models have more embedding rows than tokens. A negative id returns ErrToken.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) (string, error) {
	d := t.decoder.Start()
	for i, id := range ids {
		if id < 0 {
			return "", fault.Errorf(ErrToken, "decode: id %d at position %d is negative", id, i)
		}
		if token, ok := t.decodable(id, skipSpecial); ok {
			d.Token(token)
		}
	}
	d.End()
	return string(d.Out), nil
}

// decodable returns the token of an id, or false if decoding leaves it out.
func (t *Tokenizer) decodable(id int32, skipSpecial bool) (string, bool) {
	token, ok := t.added.token(id)
	if !ok || skipSpecial && t.added.special[token] {
		return "", false
	}
	return token, true
}

// Size returns one more than the highest id: the number of embedding rows that a model needs. If ids are missing, it
// exceeds the number of tokens.
func (t *Tokenizer) Size() int { return int(max(t.model.Limit(), t.added.top)) }

// Token returns the token of an id as spelled in the vocabulary (byte-level tokens in their alphabet), or false if
// there is none.
func (t *Tokenizer) Token(id int32) (string, bool) { return t.added.token(id) }

// ID returns the id of a token.
func (t *Tokenizer) ID(token string) (int32, bool) { return t.added.id(token) }

// BOS returns the id of the bos_token of tokenizer_config.json, or false if there is none.
func (t *Tokenizer) BOS() (int32, bool) { return t.bos, t.bos >= 0 }

// EOS returns the id of the eos_token of tokenizer_config.json, or false if there is none.
func (t *Tokenizer) EOS() (int32, bool) { return t.eos, t.eos >= 0 }
