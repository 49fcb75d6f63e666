package tokenizer

import "fmt"

// Load builds a tokenizer from the bytes of tokenizer.json and of tokenizer_config.json, which may be nil. Errors name
// the file, the part and, for malformed JSON, the offset. They wrap ErrInvalid or ErrUnsupported.
func Load(tokenizerJSON, tokenizerConfig []byte) (*Tokenizer, error) {
	f, err := readFile(tokenizerJSON)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{model: f.model, decoder: decoder{joiner(" ")}, bos: -1, eos: -1}
	if f.normalizer != nil {
		if t.normalizer, err = newNormalizer(f.normalizer); err != nil {
			return nil, err
		}
	}
	if f.pre != nil {
		if t.pre, err = newPreTokenizer(f.pre); err != nil {
			return nil, err
		}
	}
	if m, ok := f.model.(*bpe); ok {
		if steps, ok := t.pre.(preTokenizers); ok && m.useRaw() {
			m.raw = steps.rawBytes()
		}
		m.perWord = m.canSplitWords()
	}
	if f.post != nil {
		if t.template, err = newTemplate(f.post); err != nil {
			return nil, err
		}
	}
	if f.decoder != nil {
		if t.decoder, err = newDecoder(f.decoder); err != nil {
			return nil, err
		}
	}
	t.added = newAddedVocabulary(f.model)
	if err := t.added.add(f.added, t.normalizer); err != nil {
		return nil, failure(ErrInvalid, "tokenizer.json: added_tokens: %v", err)
	}
	if tokenizerConfig != nil {
		if err := t.configure(tokenizerConfig); err != nil {
			return nil, err
		}
	}
	t.added.index()
	return t, nil
}

// tokenizerFile is a parsed tokenizer.json. Null components are nil.
type tokenizerFile struct {
	added                          []addedToken
	normalizer, pre, post, decoder *node
	model                          model
}

func readFile(data []byte) (*tokenizerFile, error) {
	r, err := newJSONReader("tokenizer.json", data)
	if err != nil {
		return nil, err
	}
	f := &tokenizerFile{}
	err = r.object(func(key []byte) error {
		name := string(key)
		return r.within(name, func() error {
			switch name {
			case "version":
				return readVersion(r)
			case "added_tokens":
				return f.readAdded(r)
			case "normalizer":
				return readComponent(r, &f.normalizer)
			case "pre_tokenizer":
				return readComponent(r, &f.pre)
			case "post_processor":
				return readComponent(r, &f.post)
			case "decoder":
				return readComponent(r, &f.decoder)
			case "model":
				var err error
				f.model, err = readModel(r)
				return err
			}
			return r.skip()
		})
	})
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return nil, err
	}
	if f.model == nil {
		return nil, failure(ErrInvalid, "tokenizer.json: there is no model")
	}
	return f, nil
}

func readVersion(r *jsonReader) error {
	at := r.pos
	v, err := r.str()
	if err == nil && string(v) != "1.0" {
		return r.failAt(at, "version %q is not 1.0", v)
	}
	return err
}

func readComponent(r *jsonReader, to **node) error {
	r.nodes = 0
	n, err := r.value()
	if err == nil && n.kind != nullNode {
		*to = n
	}
	return err
}

func (f *tokenizerFile) readAdded(r *jsonReader) error {
	f.added = nil
	return r.array(func(i int) error {
		return r.within(fmt.Sprintf("[%d]", i), func() error {
			at := r.pos
			r.nodes = 0
			n, err := r.value()
			if err != nil {
				return err
			}
			if n.kind != objectNode {
				return r.failAt(at, "%v, not an object", n.kind)
			}
			if _, ok := parseID(n.get("id")); !ok {
				return r.failAt(at, "the id is missing or out of range: ids are integers from 0 to %d", maxID)
			}
			t, err := readAddedToken(n, true)
			if err != nil {
				return r.failAt(at, "%v", err)
			}
			f.added = append(f.added, t)
			return nil
		})
	})
}

// readAddedToken parses the properties that both files have. In a tokenizer.json (complete) all of them are required.
func readAddedToken(n *node, complete bool) (addedToken, error) {
	t := addedToken{normalized: true}
	content := n.get("content")
	if content == nil || content.kind != stringNode {
		return t, fmt.Errorf("the token has no content")
	}
	t.content = content.text
	for key, to := range map[string]*bool{
		"single_word": &t.singleWord, "lstrip": &t.lstrip, "rstrip": &t.rstrip, "normalized": &t.normalized,
		"special": &t.special,
	} {
		v := n.get(key)
		if v == nil && !complete {
			continue
		}
		if v == nil || v.kind != boolNode {
			return t, fmt.Errorf("token %q: %s is missing or not a boolean", t.content, key)
		}
		*to = v.text != ""
	}
	return t, nil
}
