// Package decode converts tokens to text.
//
// Contract: a Decoder is immutable and safe for concurrent use; a Run is one text. A Run never takes back what it has
// put out, and holds back what is not certain yet, so that streaming and decoding at once give the same text.
package decode

import (
	"slices"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/pattern"
	"github.com/ingotml/ingot/tokenizer/pretokenize"
)

// Decoder converts tokens to text. It is a chain of steps, each of which processes the output of the one before: a list
// of tokens or, after ByteLevel and Fuse, a single token that grows. A step emits text as soon as it is certain, so
// that streaming and decoding at once give the same text.
type Decoder []decodeStep

// decodeStep is one step. fused says that its input is the parts of a single token.
type decodeStep interface {
	start(fused bool) decoding
	// fuses reports whether its output is the parts of a single token.
	fuses(fused bool) bool
}

// decoding is the state of a step for one text.
type decoding interface {
	// token takes one token, or the next part of the single token, and emits what is certain.
	token(s string, emit func(string))
	// end emits what was held back.
	end(emit func(string))
}

// Run is the state of a chain for one text.
type Run struct {
	steps []decoding
	emits []func(string) // input of each step, and of out
	Out   []byte
}

func (d Decoder) Start() *Run {
	r := &Run{}
	fused := false
	for _, step := range d {
		r.steps = append(r.steps, step.start(fused))
		fused = step.fuses(fused)
	}
	r.emits = make([]func(string), len(d)+1)
	r.emits[len(d)] = func(s string) { r.Out = append(r.Out, s...) }
	for i, step := range slices.Backward(r.steps) {
		next := r.emits[i+1]
		r.emits[i] = func(s string) { step.token(s, next) }
	}
	return r
}

// Token takes one token and appends what is certain to r.out.
func (r *Run) Token(s string) { r.emits[0](s) }

// End flushes all steps.
func (r *Run) End() {
	for i, step := range r.steps {
		step.end(r.emits[i+1])
	}
}

func New(n *jsonfile.Node) (Decoder, error) {
	c, err := jsonfile.AsComponent(n, "decoder")
	if err != nil {
		return nil, err
	}
	steps, err := decoderSteps(nil, c)
	if err == nil {
		err = c.CheckSteps(len(steps))
	}
	if err == nil && steps.growth() > limits.DecodedTimes {
		err = c.Unsupported("makes tokens more than %d times as long, which is not supported", limits.DecodedTimes)
	}
	return steps, err
}

// growth bounds how many times as long as the tokens a text is, apart from what is put between them.
func (d Decoder) growth() int {
	times := 1
	for _, step := range d {
		if r, ok := step.(replaceDecoder); ok && times <= limits.DecodedTimes {
			from, literal := r.p.(pattern.Literal)
			if literal {
				times *= max(1, (len(r.content)+len(from)-1)/len(from))
			} else { // it may match before each character
				times *= 1 + len(r.content)
			}
		}
	}
	return times
}

// decoderSteps appends the steps of c and flattens sequences.
func decoderSteps(steps Decoder, c jsonfile.Component) (Decoder, error) {
	switch c.Name {
	case "ByteLevel":
		return append(steps, byteLevelDecoder{}), nil
	case "ByteFallback":
		return append(steps, byteFallback{}), nil
	case "Fuse":
		return append(steps, fuse{}), nil
	case "Replace":
		r, err := newReplaceDecoder(c)
		return append(steps, r), err
	case "Strip":
		s, err := newStripDecoder(c)
		return append(steps, s), err
	case "Metaspace":
		m, err := pretokenize.NewMetaspace(c)
		return append(steps, metaspaceDecoder{m}), err
	case "WordPiece":
		w, err := newWordPieceDecoder(c)
		return append(steps, w), err
	case "BPEDecoder":
		suffix, err := c.Str("suffix")
		return append(steps, bpeDecoder(suffix)), err
	case "CTC":
		d, err := newCTCDecoder(c)
		return append(steps, d), err
	case "Sequence":
		parts, err := c.Parts("decoders")
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			if steps, err = decoderSteps(steps, part); err != nil {
				return nil, err
			}
		}
		return steps, nil
	}
	return nil, c.Unsupported("is not supported")
}

// Joiner puts a separator between tokens. Tokenizers without a decoder use a space.
type Joiner string

func (Joiner) fuses(fused bool) bool { return fused }
func (j Joiner) start(bool) decoding { return &joining{separator: string(j)} }

type joining struct {
	separator string
	any       bool
}

func (j *joining) token(s string, emit func(string)) {
	if j.any {
		s = j.separator + s
	}
	j.any = true
	emit(s)
}

func (j *joining) end(func(string)) {}

// buffered is a step that needs the whole text. Steps after Fuse use it if they have no incremental form.
type buffered struct {
	apply func(string) string
	text  []byte
}

func (c *buffered) token(s string, _ func(string)) { c.text = append(c.text, s...) }
func (c *buffered) end(emit func(string)) {
	if s := c.apply(string(c.text)); s != "" {
		emit(s)
	}
}
