package runtime

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/tokenizer"
)

// Processor is what of a model needs no engine: how texts and pictures become a request, and what a request is where its sender says
// nothing. Its methods may be called from any goroutine.
type Processor struct {
	config   arch.Model
	tok      *tokenizer.Tokenizer // nil where the image has none
	eos      []int32
	base     Defaults
	pooling  pooling
	vision   *visionConfig // nil where the model takes no pictures
	template bool
}

// OpenProcessor reads the small files of a model's image.
func OpenProcessor(store *manifest.Store, entry *manifest.Entry) (*Processor, error) {
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

// Tokenizer is nil where the image has none.
func (p *Processor) Tokenizer() *tokenizer.Tokenizer { return p.tok }

// Defaults are the image's own parameters over those of the program.
func (p *Processor) Defaults() Defaults { return p.base }

// Context is the number of tokens that the model was trained to see.
func (p *Processor) Context() int { return int(p.config.Facts().Context) }

// HasTemplate tells whether the image brings a chat template.
func (p *Processor) HasTemplate() bool { return p.template }

// Encode gives the token ids of a text as it is, with what the tokenizer's own configuration adds (BOS).
func (p *Processor) Encode(text string) ([]int32, error) { return p.encode(text, true) }

// EncodeRendered gives the token ids of a text that a template made. With bos it gets what the tokenizer's configuration
// adds, unless it begins with that BOS already.
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

// BOSEOS are the texts of the tokenizer's tokens around a text, "" where it has none.
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
