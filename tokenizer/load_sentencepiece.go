package tokenizer

import (
	"slices"

	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/tokenizer/decode"
	"github.com/ingotml/ingot/tokenizer/encode"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/normalize"
	"github.com/ingotml/ingot/tokenizer/sentencepiece"
)

// LoadSentencePiece builds a tokenizer from the bytes of a tokenizer.model, a SentencePiece protocol buffers message
// (sentencepiece_model.proto), and of tokenizer_config.json, which may be nil. It is for models without a
// tokenizer.json.
//
// Text between special tokens is encoded as the library sentencepiece 0.2.3 encodes it. Control symbols and the
// configuration's added tokens are matched in the text, as in transformers. A space is prepended at the beginning of
// the text and, with "legacy": true, also after special tokens. add_bos_token and add_eos_token apply; if they are
// absent, the class decides, see spClasses.
func LoadSentencePiece(model, tokenizerConfig []byte) (*Tokenizer, error) {
	t, _, err := readSentencePiece(model, tokenizerConfig)
	return t, err
}

func readSentencePiece(model, tokenizerConfig []byte) (*Tokenizer, *sentencepiece.Model, error) {
	m, err := sentencepiece.Read(model)
	if err != nil {
		return nil, nil, err
	}
	e, err := encode.NewSentencePiece(m)
	if err != nil {
		return nil, nil, err
	}
	t, err := buildSentencePiece(m, e, tokenizerConfig)
	return t, m, err
}

// buildSentencePiece makes the tokenizer of a parsed file, of which it needs the marked pieces alone.
func buildSentencePiece(m *sentencepiece.Model, model encode.Model, tokenizerConfig []byte) (*Tokenizer, error) {
	t := &Tokenizer{model: model, bos: -1, eos: -1, decoder: decode.NewSentencePiece(m)}
	normalizer, err := normalize.NewSentencePiece(m)
	if err != nil {
		return nil, err
	}
	t.normalizer = normalizer
	t.added = newAddedVocabulary(t.model)
	var added []addedToken
	for _, p := range m.Marked {
		if p.Kind == sentencepiece.Control {
			added = append(added, addedToken{content: p.Text, special: true})
		}
	}
	if err := t.added.add(added, nil); err != nil {
		return nil, fault.Errorf(ErrInvalid, "tokenizer.model: %v", err)
	}
	for id, to := range map[int32]*int32{m.Bos: &t.bos, m.Eos: &t.eos} {
		if id >= 0 && int(id) < m.Size {
			*to = id
		}
	}
	options := spOptions{}
	if tokenizerConfig != nil {
		if options, err = t.configureSentencePiece(tokenizerConfig); err != nil {
			return nil, err
		}
	}
	normalizer.Everywhere = options.legacy
	normalizer.Prefix = normalizer.Prefix && !options.noPrefix
	t.template = template{{}}
	for _, token := range slices.Backward(options.before) {
		if id, ok := t.added.id(token); ok {
			t.template = slices.Insert(t.template, 0, templatePiece{[]int32{id}})
		}
	}
	if options.bos && t.bos >= 0 {
		t.template = slices.Insert(t.template, 0, templatePiece{[]int32{t.bos}})
	}
	if options.eos && t.eos >= 0 {
		t.template = append(t.template, templatePiece{[]int32{t.eos}})
	}
	t.added.index()
	return t, nil
}

// spOptions are the options of tokenizer_config.json that apply to a tokenizer.model.
type spOptions struct {
	spClass
	noPrefix bool
}

func (t *Tokenizer) configureSentencePiece(data []byte) (o spOptions, err error) {
	r, err := jsonfile.NewReader("tokenizer_config.json", pyjson.Plain(data))
	if err != nil {
		return o, err
	}
	n, err := r.Value()
	if err != nil {
		return o, err
	}
	if class := n.Get("tokenizer_class"); class != nil {
		o.spClass = spClassOf(class.Text)
	}
	if err := t.place(o.spClass, n.Get("added_tokens_decoder")); err != nil {
		return o, fault.Errorf(ErrInvalid, "tokenizer_config.json: %v", err)
	}
	if err := t.configure(data); err != nil {
		return o, err
	}
	if o.placed {
		t.added.matchPlain()
	}
	for key, to := range map[string]*bool{"add_bos_token": &o.bos, "add_eos_token": &o.eos, "legacy": &o.legacy} {
		if v := n.Get(key); v != nil {
			*to = v.Text == "true"
		}
	}
	if v := n.Get("add_prefix_space"); v != nil {
		o.noPrefix = v.Text != "true"
	}
	return o, nil
}
