package tokenizer

import (
	"fmt"

	"github.com/ingotml/ingot/tokenizer/decode"
	"github.com/ingotml/ingot/tokenizer/encode"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/normalize"
	"github.com/ingotml/ingot/tokenizer/pretokenize"
)

// Load builds a tokenizer from the bytes of tokenizer.json and of tokenizer_config.json, which may be nil. Errors name
// the file, the part and, for malformed JSON, the offset. They wrap ErrInvalid or ErrUnsupported.
func Load(tokenizerJSON, tokenizerConfig []byte) (*Tokenizer, error) {
	f, err := readFile(tokenizerJSON, nil)
	if err != nil {
		return nil, err
	}
	return f.build(tokenizerConfig)
}

// build makes the tokenizer of a parsed file.
func (f *tokenizerFile) build(tokenizerConfig []byte) (_ *Tokenizer, err error) {
	t := &Tokenizer{model: f.model, decoder: decode.Decoder{decode.Joiner(" ")}, bos: -1, eos: -1}
	if f.normalizer != nil {
		if t.normalizer, err = normalize.New(f.normalizer); err != nil {
			return nil, err
		}
	}
	if f.pre != nil {
		if t.pre, err = pretokenize.New(f.pre); err != nil {
			return nil, err
		}
	}
	var raw func() bool
	if t.pre != nil {
		raw = t.pre.RawBytes
	}
	encode.FollowSplit(t.model, raw)
	if f.post != nil {
		if t.template, err = newTemplate(f.post); err != nil {
			return nil, err
		}
	}
	if f.decoder != nil {
		if t.decoder, err = decode.New(f.decoder); err != nil {
			return nil, err
		}
	}
	t.added = newAddedVocabulary(f.model)
	if err := t.added.add(f.added, t.normalizer); err != nil {
		return nil, fault.Errorf(ErrInvalid, "tokenizer.json: added_tokens: %v", err)
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
	normalizer, pre, post, decoder *jsonfile.Node
	model                          encode.Model
	modelStart, modelEnd           int // offsets of the model's JSON
}

// readFile parses a tokenizer.json. A model that is not nil replaces that of the file.
func readFile(data []byte, model encode.Model) (*tokenizerFile, error) {
	r, err := jsonfile.NewReader("tokenizer.json", data)
	if err != nil {
		return nil, err
	}
	f := &tokenizerFile{}
	err = r.Object(func(key []byte) error {
		name := string(key)
		return r.Within(name, func() error {
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
				if f.model = model; model != nil {
					return r.Skip()
				}
				r.Peek()
				f.modelStart = r.Pos
				var err error
				f.model, err = encode.Read(r)
				f.modelEnd = r.Pos
				return err
			}
			return r.Skip()
		})
	})
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return nil, err
	}
	if f.model == nil {
		return nil, fault.Errorf(ErrInvalid, "tokenizer.json: there is no model")
	}
	return f, nil
}

func readVersion(r *jsonfile.Reader) error {
	at := r.Pos
	v, err := r.Str()
	if err == nil && string(v) != "1.0" {
		return r.FailAt(at, "version %q is not 1.0", v)
	}
	return err
}

func readComponent(r *jsonfile.Reader, to **jsonfile.Node) error {
	r.Nodes = 0
	n, err := r.Value()
	if err == nil && n.Kind != jsonfile.NullNode {
		*to = n
	}
	return err
}

func (f *tokenizerFile) readAdded(r *jsonfile.Reader) error {
	f.added = nil
	return r.Array(func(i int) error {
		return r.Within(fmt.Sprintf("[%d]", i), func() error {
			at := r.Pos
			r.Nodes = 0
			n, err := r.Value()
			if err != nil {
				return err
			}
			if n.Kind != jsonfile.ObjectNode {
				return r.FailAt(at, "%v, not an object", n.Kind)
			}
			if _, ok := jsonfile.ParseID(n.Get("id")); !ok {
				return r.FailAt(at, "the id is missing or out of range: ids are integers from 0 to %d", jsonfile.MaxID)
			}
			t, err := readAddedToken(n, true)
			if err != nil {
				return r.FailAt(at, "%v", err)
			}
			f.added = append(f.added, t)
			return nil
		})
	})
}

// readAddedToken parses the properties that both files have. In a tokenizer.json (complete) all of them are required.
func readAddedToken(n *jsonfile.Node, complete bool) (addedToken, error) {
	t := addedToken{normalized: true}
	content := n.Get("content")
	if content == nil || content.Kind != jsonfile.StringNode {
		return t, fmt.Errorf("the token has no content")
	}
	t.content = content.Text
	for _, property := range [...]struct {
		key string
		to  *bool
	}{
		{"single_word", &t.singleWord}, {"lstrip", &t.lstrip}, {"rstrip", &t.rstrip}, {"normalized", &t.normalized},
		{"special", &t.special},
	} {
		v := n.Get(property.key)
		if v == nil && !complete {
			continue
		}
		if v == nil || v.Kind != jsonfile.BoolNode {
			return t, fmt.Errorf("token %q: %s is missing or not a boolean", t.content, property.key)
		}
		*property.to = v.Text != ""
	}
	return t, nil
}
