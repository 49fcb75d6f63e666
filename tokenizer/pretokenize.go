package tokenizer

// preTokenizer splits text into the pieces that the model encodes one by one; nil does not split.
type preTokenizer interface {
	// pieces calls emit for each piece; none is empty. first reports whether s begins the text passed to Encode.
	pieces(s string, first bool, emit emitPiece) error
}

type emitPiece func(piece string, first bool) error

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

// preTokenizerSteps appends the steps of c and flattens sequences.
func preTokenizerSteps(steps preTokenizers, c component) (preTokenizers, error) {
	switch c.name {
	case "ByteLevel":
		p := &byteLevel{useRegex: true}
		var err error
		if p.addPrefixSpace, err = c.flag("add_prefix_space"); err != nil {
			return nil, err
		}
		if _, err := c.flag("trim_offsets"); err != nil { // it adjusts offsets, which are not computed here
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
	case "Punctuation":
		p := split{p: runePattern(isPunctuation), behaviour: isolated}
		if c.get("behavior") != nil {
			var err error
			if p.behaviour, err = behaviourOf(c); err != nil {
				return nil, err
			}
		}
		return append(steps, p), nil
	case "BertPreTokenizer":
		return append(steps, split{p: runePattern(isSpace), behaviour: removed},
			split{p: runePattern(isPunctuation), behaviour: isolated}), nil
	case "Whitespace":
		return append(steps, split{p: wordsAndSymbols{}, behaviour: removed, invert: true}), nil
	case "WhitespaceSplit":
		return append(steps, split{p: runePattern(isSpace), behaviour: removed}), nil
	case "CharDelimiterSplit":
		delimiter, err := c.char("delimiter")
		return append(steps, split{p: literal(delimiter), behaviour: removed}), err
	case "FixedLength":
		p, err := newFixedLength(c)
		return append(steps, p), err
	case "UnicodeScripts":
		return append(steps, unicodeScripts{}), nil
	case "Metaspace":
		m, err := newMetaspace(c)
		return append(steps, m), err
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
	b, err := behaviourOf(c)
	if err != nil {
		return split{}, err
	}
	invert, err := c.flag("invert")
	return split{p, b, invert}, err
}

func behaviourOf(c component) (behaviour, error) {
	name, err := c.str("behavior")
	if err != nil {
		return 0, err
	}
	b, ok := behaviours[name]
	if !ok {
		return 0, c.unsupported("with behavior %q is not supported", name)
	}
	return b, nil
}

// preTokenizers run in order, each on the pieces of the previous one.
type preTokenizers []preTokenizer

func (seq preTokenizers) pieces(s string, first bool, emit emitPiece) error {
	for i := len(seq) - 1; i > 0; i-- {
		step, next := seq[i], emit
		emit = func(piece string, first bool) error { return step.pieces(piece, first, next) }
	}
	return seq[0].pieces(s, first, emit)
}

// rawBytes makes a final byte-level step emit plain bytes, for models that accept them. It reports whether it did.
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

// byteLevel splits with the GPT-2 pattern and maps bytes to the byte-level alphabet.
type byteLevel struct {
	addPrefixSpace bool
	useRegex       bool
	words          split
	raw            bool // emit plain bytes
}

func (p *byteLevel) pieces(s string, first bool, emit emitPiece) error {
	if p.addPrefixSpace && s[0] != ' ' {
		s = " " + s
	}
	if !p.raw {
		raw := emit
		emit = func(piece string, first bool) error { return raw(toByteLevel(piece), first) }
	}
	if !p.useRegex {
		return emit(s, first)
	}
	return p.words.pieces(s, first, emit)
}
