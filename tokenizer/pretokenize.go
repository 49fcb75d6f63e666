package tokenizer

// preTokenizer cuts text into the pieces that the model sees one by one; nil leaves it whole.
type preTokenizer interface {
	// pieces calls emit for each piece; none is empty.
	pieces(s string, emit func(piece string) error) error
}

func newPreTokenizer(n *node) (preTokenizer, error) {
	c, err := asComponent(n, "pre_tokenizer")
	if err != nil {
		return nil, err
	}
	steps, err := preTokenizerSteps(nil, c)
	if err != nil || len(steps) == 0 {
		return nil, err
	}
	return steps, nil
}

// preTokenizerSteps appends what c does, with sequences laid flat.
func preTokenizerSteps(steps preTokenizers, c component) (preTokenizers, error) {
	switch c.name {
	case "ByteLevel":
		p := &byteLevel{useRegex: true}
		var err error
		if p.addPrefixSpace, err = c.flag("add_prefix_space"); err != nil {
			return nil, err
		}
		if _, err := c.flag("trim_offsets"); err != nil { // it moves offsets, which we do not compute
			return nil, err
		}
		if c.get("use_regex") != nil {
			if p.useRegex, err = c.flag("use_regex"); err != nil {
				return nil, err
			}
		}
		if p.useRegex {
			p.words.p, _ = newScanner(gpt2Pattern)
			p.words.behaviour = isolated
		}
		return append(steps, p), nil
	case "Split":
		p, err := newSplit(c)
		return append(steps, p), err
	case "Digits":
		each, err := c.flag("individual_digits")
		if err != nil {
			return nil, err
		}
		p := split{p: runePattern(characters().numeric), behaviour: contiguous}
		if each {
			p.behaviour = isolated
		}
		return append(steps, p), nil
	case "Sequence":
		parts, err := c.parts("pretokenizers")
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			if steps, err = preTokenizerSteps(steps, part); err != nil {
				return nil, err
			}
		}
		return steps, nil
	}
	return nil, c.unsupported("is not supported")
}

func newSplit(c component) (split, error) {
	p, err := newPattern(c)
	if err != nil {
		return split{}, err
	}
	name, err := c.str("behavior")
	if err != nil {
		return split{}, err
	}
	b, ok := behaviours[name]
	if !ok {
		return split{}, c.unsupported("with behavior %q is not supported", name)
	}
	invert, err := c.flag("invert")
	return split{p, b, invert}, err
}

// preTokenizers run one after the other, each on the pieces of the one before.
type preTokenizers []preTokenizer

func (seq preTokenizers) pieces(s string, emit func(piece string) error) error {
	for i := len(seq) - 1; i > 0; i-- {
		step, next := seq[i], emit
		emit = func(piece string) error { return step.pieces(piece, next) }
	}
	return seq[0].pieces(s, emit)
}

// rawBytes makes a byte-level step at the end emit the bytes themselves, for a model that takes them.
func (seq preTokenizers) rawBytes() bool {
	for i, step := range seq {
		if b, ok := step.(*byteLevel); ok {
			if i == len(seq)-1 {
				b.raw = true
			}
			return b.raw
		}
	}
	return false
}

// byteLevel cuts with the GPT-2 pattern and writes bytes as characters of the byte-level alphabet.
type byteLevel struct {
	addPrefixSpace bool
	useRegex       bool
	words          split
	raw            bool // leave the bytes as they are
}

func (p *byteLevel) pieces(s string, emit func(piece string) error) error {
	if p.addPrefixSpace && s[0] != ' ' {
		s = " " + s
	}
	if !p.raw {
		raw := emit
		emit = func(piece string) error { return raw(toByteLevel(piece)) }
	}
	if !p.useRegex {
		return emit(s)
	}
	return p.words.pieces(s, emit)
}
