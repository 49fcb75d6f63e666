package runtime

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/tokenizer"
)

// Processor holds the parts of a model that do not need the engine: how texts and pictures become a request, and the
// defaults of a request. Its methods are safe for concurrent use.
type Processor struct {
	config   arch.Model
	tok      *tokenizer.Tokenizer // nil if the image has none
	eos      []int32
	base     Defaults
	pooling  pooling
	vision   *visionConfig // nil if the model does not process pictures
	template bool
}

// OpenProcessor reads the small files of a model's image.
func OpenProcessor(store *store.Store, entry *store.Entry) (*Processor, error) {
	p, err := files{store, entry.Image}.processor()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", entry.Name, err)
	}
	return p, nil
}

func (f files) processor() (p *Processor, err error) {
	p = &Processor{}
	if p.config, err = f.config(); err != nil {
		return nil, err
	}
	if p.tok, err = f.tokenizer(); err != nil {
		return nil, err
	}
	if p.eos, err = f.eos(p.tok); err != nil {
		return nil, err
	}
	if p.template, err = f.hasTemplate(); err != nil {
		return nil, err
	}
	if p.base, err = f.defaults(); err != nil {
		return nil, err
	}
	p.pooling = f.pooling()
	if p.vision, err = f.readVision(p.config); err != nil {
		return nil, err
	}
	return p, nil
}

// Tokenizer returns the image's tokenizer; nil if it has none.
func (p *Processor) Tokenizer() *tokenizer.Tokenizer { return p.tok }

// Defaults returns the defaults of requests: the image's parameters, and the program's defaults for the rest.
func (p *Processor) Defaults() Defaults { return p.base }

// Context returns the length of the model's context in tokens.
func (p *Processor) Context() int { return int(p.config.Facts().Context) }

// HasTemplate reports whether the image has a chat template.
func (p *Processor) HasTemplate() bool { return p.template }

// Encode returns the token ids of a text, including the special tokens that the tokenizer's configuration adds, such as
// BOS.
func (p *Processor) Encode(text string) ([]int32, error) { return p.encode(text, true) }

// EncodeRendered returns the token ids of a rendered template. With bos, it adds the special tokens of the tokenizer's
// configuration, unless the text already begins with the BOS token.
func (p *Processor) EncodeRendered(text string, bos bool) ([]int32, error) {
	if begin, _ := p.BOSEOS(); begin != "" && strings.HasPrefix(text, begin) {
		bos = false
	}
	return p.encode(text, bos)
}

func (p *Processor) encode(text string, special bool) ([]int32, error) {
	if p.tok == nil {
		return nil, fmt.Errorf("%w: give the prompt as token ids", ErrNoTokenizer)
	}
	return p.tok.Encode(text, special)
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
