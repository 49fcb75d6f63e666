package tokenizer

import "slices"

// A decoder turns the tokens of ids into text. It is a chain of steps, each of which takes what the one before has made:
// a list of tokens or, after ByteLevel and Fuse, one token that grows. A step says what is certain as soon as it is, so
// that decoding bit by bit and at once cannot differ.
type decoder []decodeStep

// decodeStep makes the working state of one text. fused says that what comes is parts of one token.
type decodeStep interface {
	start(fused bool) decoding
	// fuses reports whether what comes out is parts of one token.
	fuses(fused bool) bool
}

// decoding is one run of a step.
type decoding interface {
	// token takes one token, or the next part of the only one, and emits what is certain after it.
	token(s string, emit func(string))
	// end emits what was held back.
	end(emit func(string))
}

// decodeRun is one run of a chain.
type decodeRun struct {
	steps []decoding
	emits []func(string) // what each step hands its tokens to
	out   []byte
}

func (d decoder) start() *decodeRun {
	r := &decodeRun{}
	fused := false
	for _, step := range d {
		r.steps = append(r.steps, step.start(fused))
		fused = step.fuses(fused)
	}
	r.emits = make([]func(string), len(d)+1)
	r.emits[len(d)] = func(s string) { r.out = append(r.out, s...) }
	for i, step := range slices.Backward(r.steps) {
		next := r.emits[i+1]
		r.emits[i] = func(s string) { step.token(s, next) }
	}
	return r
}

// token takes one token; r.out grows by what is certain.
func (r *decodeRun) token(s string) { r.emits[0](s) }

// end lets each step give what it held back.
func (r *decodeRun) end() {
	for i, step := range r.steps {
		step.end(r.emits[i+1])
	}
}

func newDecoder(n *node) (decoder, error) {
	c, err := asComponent(n, "decoder")
	if err != nil {
		return nil, err
	}
	return decoderSteps(nil, c)
}

// decoderSteps appends what c does, with sequences laid flat.
func decoderSteps(steps decoder, c component) (decoder, error) {
	switch c.name {
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
		m, err := newMetaspace(c)
		return append(steps, metaspaceDecoder{m}), err
	case "WordPiece":
		w, err := newWordPieceDecoder(c)
		return append(steps, w), err
	case "BPEDecoder":
		suffix, err := c.str("suffix")
		return append(steps, bpeDecoder(suffix)), err
	case "CTC":
		d, err := newCTCDecoder(c)
		return append(steps, d), err
	case "Sequence":
		parts, err := c.parts("decoders")
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
	return nil, c.unsupported("is not supported")
}

// joiner puts a separator between tokens: a space when a tokenizer has no decoder.
type joiner string

func (joiner) fuses(fused bool) bool { return fused }
func (j joiner) start(bool) decoding { return &joining{separator: string(j)} }

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

// collected is a step that is only sure at the end: the way of all that have no better one after Fuse.
type collected struct {
	apply func(string) string
	text  []byte
}

func (c *collected) token(s string, _ func(string)) { c.text = append(c.text, s...) }
func (c *collected) end(emit func(string)) {
	if s := c.apply(string(c.text)); s != "" {
		emit(s)
	}
}
