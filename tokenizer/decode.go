package tokenizer

// A decoder turns the tokens of ids into text. It is written as what it does with a stream of tokens, so that decoding
// bit by bit and at once cannot differ.
type decoder interface {
	start() decoding
}

// decoding is one run of a decoder.
type decoding interface {
	// token appends what is certain of the text after one more token.
	token(dst []byte, token string) []byte
	// end appends what was held back.
	end(dst []byte) []byte
}

func newDecoder(n *node) (decoder, error) {
	c, err := asComponent(n, "decoder")
	if err != nil {
		return nil, err
	}
	return buildDecoder(c)
}

func buildDecoder(c component) (decoder, error) {
	switch c.name {
	case "ByteLevel":
		return byteLevelDecoder{}, nil
	case "Sequence":
		parts, err := c.parts("decoders")
		if err != nil {
			return nil, err
		}
		if len(parts) == 0 {
			return joiner(""), nil
		}
		if len(parts) == 1 {
			return buildDecoder(parts[0])
		}
		for _, part := range parts {
			if _, err := buildDecoder(part); err != nil {
				return nil, err
			}
		}
		return nil, c.unsupported("of several decoders is not supported")
	}
	return nil, c.unsupported("is not supported")
}

// joiner puts a separator between tokens: a space when a tokenizer has no decoder.
type joiner string

func (j joiner) start() decoding { return &joining{separator: string(j)} }

type joining struct {
	separator string
	any       bool
}

func (j *joining) token(dst []byte, token string) []byte {
	if j.any {
		dst = append(dst, j.separator...)
	}
	j.any = true
	return append(dst, token...)
}

func (j *joining) end(dst []byte) []byte { return dst }

// byteLevelDecoder joins the bytes that the tokens stand for; what is not UTF-8 in them becomes U+FFFD.
type byteLevelDecoder struct{}

func (byteLevelDecoder) start() decoding { return &byteDecoding{} }

type byteDecoding struct {
	pending []byte // the start of a character
}

func (d *byteDecoding) token(dst []byte, token string) []byte {
	d.pending = fromByteLevel(d.pending, token)
	rest := d.pending
	for len(rest) > 0 {
		n, state := sequence(rest)
		if state == open {
			break
		}
		if state == whole {
			dst = append(dst, rest[:n]...)
		} else {
			dst = append(dst, replacement...)
		}
		rest = rest[n:]
	}
	d.pending = append(d.pending[:0], rest...)
	return dst
}

func (d *byteDecoding) end(dst []byte) []byte {
	if len(d.pending) > 0 {
		d.pending = d.pending[:0]
		dst = append(dst, replacement...)
	}
	return dst
}
