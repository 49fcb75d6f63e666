package processor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/fit"
	"github.com/ingotml/ingot/tokenizer"
	"github.com/ingotml/ingot/tokenizer/infill"
)

// Processor holds the parts of a model that do not need the engine: how texts and pictures become a request, and the
// defaults of a request. Its methods are safe for concurrent use.
type Processor struct {
	Config  arch.Model
	tok     *tokenizer.Tokenizer // nil if the image has none
	EOS     []int32
	base    runtime.Defaults
	Pooling Pooling
	Vision  *Vision // nil if the model does not process pictures
	NoTower bool    // the model was built without a vision tower, although its configuration has one
}

// Open reads the small files of a model's image.
func Open(store *store.Store, entry *store.Entry) (*Processor, error) {
	p, err := Files{Store: store, Image: entry.Image}.Processor()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", entry.Name, runtime.OfImage(err))
	}
	return p, nil
}

// Processor reads what a Processor needs.
func (f Files) Processor() (p *Processor, err error) {
	p = &Processor{}
	if p.Config, err = f.Config(); err != nil {
		return nil, err
	}
	if p.tok, err = f.Tokenizer(); err != nil {
		return nil, err
	}
	if p.EOS, err = f.EOS(p.tok); err != nil {
		return nil, err
	}
	vocab := p.Config.Facts().Vocab
	p.EOS = slices.DeleteFunc(p.EOS, func(id int32) bool { return int64(id) >= vocab }) // create has warned of them
	if p.base, err = f.defaults(); err != nil {
		return nil, err
	}
	p.Pooling = f.pooling()
	if p.Vision, err = f.readVision(p.Config); err != nil {
		return nil, err
	}
	return p, nil
}

// Tokenizer returns the image's tokenizer; nil if it has none.
func (p *Processor) Tokenizer() *tokenizer.Tokenizer { return p.tok }

// Defaults returns the defaults of requests: the image's parameters, and the program's defaults for the rest.
func (p *Processor) Defaults() runtime.Defaults { return p.base }

// Context returns the length of the model's context in tokens.
func (p *Processor) Context() int { return int(p.Config.Facts().Context) }

// Encode returns the token ids of a text, including the special tokens that the tokenizer's configuration adds, such as
// BOS.
func (p *Processor) Encode(ctx context.Context, text string) ([]int32, error) {
	return p.encode(ctx, text, true)
}

// Infill returns how the vocabulary marks the parts of a text with a gap, or nil if it has no tokens for that.
func (p *Processor) Infill() *infill.Format { return infill.Of(p.tok) }

// EncodeRendered returns the token ids of a rendered template. With bos, it adds the special tokens of the tokenizer's
// configuration, unless the text already begins with the BOS token.
func (p *Processor) EncodeRendered(ctx context.Context, text string, bos bool) ([]int32, error) {
	if begin, _ := p.BOSEOS(); begin != "" && strings.HasPrefix(text, begin) {
		bos = false
	}
	return p.encode(ctx, text, bos)
}

func (p *Processor) encode(ctx context.Context, text string, special bool) ([]int32, error) {
	if p.tok == nil {
		return nil, fmt.Errorf("%w: give the prompt as token ids", runtime.ErrNoTokenizer)
	}
	ids, err := p.tok.Encode(ctx, text, special)
	if err != nil && ctx.Err() == nil { // the tokenizer cannot encode this text, or not with so little work
		err = fmt.Errorf("%w: %w", runtime.ErrPrompt, err)
	}
	return ids, err
}

// EncodeWithin encodes a text like Encode, cut to at most limit tokens. It removes tokens at the end of the text, but
// keeps those that the tokenizer adds around it. cut reports whether it removed any.
func (p *Processor) EncodeWithin(ctx context.Context, text string, limit int) (ids []int32, cut bool, err error) {
	ids, err = p.Encode(ctx, text)
	if err != nil || len(ids) <= limit {
		return ids, false, err
	}
	own, err := p.encode(ctx, text, false)
	if err != nil {
		return nil, false, err
	}
	around := len(ids) - len(own)
	if around < 0 || around > limit {
		return ids[:max(limit, 0)], true, nil
	}
	before := 0
	for before < around && !slices.Equal(ids[before:before+len(own)], own) {
		before++
	}
	return slices.Concat(ids[:before], own[:limit-around], ids[before+len(own):]), true, nil
}

// BOSEOS returns the texts of the BOS and EOS tokens; "" if the tokenizer has none.
func (p *Processor) BOSEOS() (bos, eos string) {
	if p.tok == nil {
		return "", ""
	}
	token := func(id int32, ok bool) string {
		if !ok {
			return ""
		}
		text, _ := p.tok.Token(id)
		return text
	}
	return token(p.tok.BOS()), token(p.tok.EOS())
}

// StateBytes returns the size of the state of a sequence with the given number of tokens.
func (p *Processor) StateBytes(tokens int, float32s bool, kv runtime.KVType) int64 {
	return fit.State(p.Config, tokens, float32s, kv)
}
