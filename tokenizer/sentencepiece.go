package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// LoadSentencePiece builds a tokenizer from the bytes of a tokenizer.model, a SentencePiece protocol buffers message
// (sentencepiece_model.proto), and of tokenizer_config.json, which may be nil. It is for models without a
// tokenizer.json.
//
// Text between special tokens is encoded as the library sentencepiece 0.2.3 encodes it. Control symbols and the
// configuration's added tokens are matched in the text, as in transformers. A space is prepended at the beginning of
// the text and, with "legacy": true, also after special tokens. add_bos_token and add_eos_token apply; if they are
// absent, Llama's and Gemma's classes add BOS and T5's class adds EOS.
func LoadSentencePiece(model, tokenizerConfig []byte) (*Tokenizer, error) {
	m, err := readSentencePiece(model)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{bos: -1, eos: -1, decoder: decoder{m.decoder()}}
	if t.model, err = m.model(); err != nil {
		return nil, err
	}
	normalizer, err := m.normalizer()
	if err != nil {
		return nil, err
	}
	t.normalizer = normalizer
	t.added = newAddedVocabulary(t.model)
	var added []addedToken
	for _, p := range m.pieces {
		if p.kind == spControl {
			added = append(added, addedToken{content: p.text, special: true})
		}
	}
	if err := t.added.add(added, nil); err != nil {
		return nil, failure(ErrInvalid, "tokenizer.model: %v", err)
	}
	for id, to := range map[int32]*int32{m.bos: &t.bos, m.eos: &t.eos} {
		if id >= 0 && int(id) < len(m.pieces) {
			*to = id
		}
	}
	options := spOptions{}
	if tokenizerConfig != nil {
		if options, err = t.configureSentencePiece(tokenizerConfig); err != nil {
			return nil, err
		}
	}
	normalizer.everywhere = options.legacy
	normalizer.prefix = normalizer.prefix && !options.noPrefix
	t.template = template{{}}
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
type spOptions struct{ bos, eos, legacy, noPrefix bool }

func (t *Tokenizer) configureSentencePiece(data []byte) (o spOptions, err error) {
	if err := t.configure(data); err != nil {
		return o, err
	}
	r, err := newJSONReader("tokenizer_config.json", data)
	if err != nil {
		return o, err
	}
	n, err := r.value()
	if err != nil {
		return o, err
	}
	if class := n.get("tokenizer_class"); class != nil {
		o.bos = strings.HasPrefix(class.text, "Llama") || strings.HasPrefix(class.text, "CodeLlama") ||
			strings.HasPrefix(class.text, "Gemma")
		o.eos = strings.HasPrefix(class.text, "T5")
	}
	for key, to := range map[string]*bool{"add_bos_token": &o.bos, "add_eos_token": &o.eos, "legacy": &o.legacy} {
		if v := n.get(key); v != nil {
			*to = v.text == "true"
		}
	}
	if v := n.get("add_prefix_space"); v != nil {
		o.noPrefix = v.text != "true"
	}
	return o, nil
}

// Types of pieces.
const (
	spNormal  = 1
	spUnknown = 2
	spControl = 3
	spUser    = 4
	spUnused  = 5
	spByte    = 6
)

// spModel is a parsed SentencePiece model file.
type spModel struct {
	pieces                            []spPiece
	kind                              uint64 // 1: Unigram, 2: BPE
	byteFallback, suffix              bool
	unk, bos, eos                     int32
	unkSurface                        string
	charsmap                          []byte
	dummyPrefix, removeExtra, escapes bool
	denormalizes                      bool
}

type spPiece struct {
	text  string
	score float32
	kind  uint64
}

const maxPieceBytes = 8000 // pieces are shorter than this, as in SentencePiece

func readSentencePiece(data []byte) (*spModel, error) {
	m := &spModel{kind: 1, unk: -1, bos: 1, eos: 2, unkSurface: " \u2047 ", dummyPrefix: true, removeExtra: true,
		escapes: true}
	err := protoFields(data, func(number int, v protoValue) error {
		switch number {
		case 1:
			p, err := readPiece(v.bytes)
			m.pieces = append(m.pieces, p)
			return err
		case 2:
			return protoFields(v.bytes, m.readTrainer)
		case 3:
			return protoFields(v.bytes, m.readNormalizer)
		case 5:
			return protoFields(v.bytes, func(number int, v protoValue) error {
				m.denormalizes = m.denormalizes || number == 2 && len(v.bytes) > 0
				return nil
			})
		}
		return nil
	})
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, failure(ErrInvalid, "tokenizer.model: %v", err)
	}
	unsupported := func(format string, args ...any) error {
		return failure(ErrUnsupported, "tokenizer.model: "+format, args...)
	}
	switch {
	case m.kind != 1 && m.kind != 2:
		return nil, unsupported("model type %d is neither Unigram nor BPE", m.kind)
	case m.suffix:
		return nil, unsupported("treat_whitespace_as_suffix is not supported")
	case m.denormalizes:
		return nil, unsupported("a denormalizer is not supported")
	}
	return m, nil
}

func readPiece(data []byte) (spPiece, error) {
	p := spPiece{kind: spNormal}
	err := protoFields(data, func(number int, v protoValue) error {
		switch number {
		case 1:
			p.text = string(v.bytes)
		case 2:
			p.score = v.float()
		case 3:
			p.kind = v.number
		}
		return nil
	})
	return p, err
}

func (m *spModel) readTrainer(number int, v protoValue) error {
	switch number {
	case 3:
		m.kind = v.number
	case 24:
		m.suffix = v.number != 0
	case 35:
		m.byteFallback = v.number != 0
	case 41:
		m.bos = int32(v.number)
	case 42:
		m.eos = int32(v.number)
	case 44:
		m.unkSurface = validText(string(v.bytes))
	}
	return nil
}

func (m *spModel) readNormalizer(number int, v protoValue) error {
	switch number {
	case 2:
		m.charsmap = slices.Clone(v.bytes)
	case 3:
		m.dummyPrefix = v.number != 0
	case 4:
		m.removeExtra = v.number != 0
	case 5:
		m.escapes = v.number != 0
	}
	return nil
}

// check performs the checks that SentencePiece performs when it loads a model.
func (m *spModel) check() error {
	if len(m.pieces) > maxID {
		return fmt.Errorf("%d pieces", len(m.pieces))
	}
	bytes := 0
	seen := make(map[string]bool, len(m.pieces))
	for i, p := range m.pieces {
		switch {
		case p.text == "" || len(p.text) >= maxPieceBytes || !utf8.ValidString(p.text) || strings.ContainsRune(p.text, 0):
			return fmt.Errorf("piece %d is empty, too long or not valid text", i)
		case seen[p.text]:
			return fmt.Errorf("piece %d, %q, is a duplicate", i, p.text)
		case math.IsNaN(float64(p.score)) || math.IsInf(float64(p.score), 0):
			return fmt.Errorf("piece %d, %q, has no finite score", i, p.text)
		case p.kind < spNormal || p.kind > spByte:
			return fmt.Errorf("piece %d, %q, has the unknown type %d", i, p.text, p.kind)
		case p.kind == spUnknown && m.unk >= 0:
			return fmt.Errorf("pieces %d and %d are both of type UNKNOWN", m.unk, i)
		case p.kind == spUnknown:
			m.unk = int32(i)
		case p.kind == spByte:
			if _, ok := byteToken(p.text); !ok || !m.byteFallback {
				return fmt.Errorf("piece %d, %q, is an unexpected byte piece", i, p.text)
			}
			bytes++
		}
		seen[p.text] = true
	}
	if m.unk < 0 {
		return fmt.Errorf("no piece is of type UNKNOWN")
	}
	if m.byteFallback && bytes != 256 {
		return fmt.Errorf("%d byte pieces, not 256", bytes)
	}
	return nil
}

// userDefined returns a trie of the user-defined pieces, which are never split, or nil if there are none.
func (m *spModel) userDefined() *trie {
	var entries []trieEntry
	for i, p := range m.pieces {
		if p.kind == spUser {
			entries = append(entries, trieEntry{p.text, int32(i)})
		}
	}
	if entries == nil {
		return nil
	}
	return newTrie(entries)
}

func (m *spModel) vocabulary() *vocabulary {
	v := &vocabulary{ids: make(map[string]int32, len(m.pieces)), top: int32(len(m.pieces))}
	for i, p := range m.pieces {
		v.ids[p.text] = int32(i)
		v.dense = append(v.dense, p.text)
	}
	return v
}

func (m *spModel) model() (model, error) {
	if m.kind == 2 {
		return newSentenceBPE(m)
	}
	return newSentenceUnigram(m), nil
}

// newSentenceUnigram returns the Unigram of a SentencePiece model (unigram_model.cc). It sums scores in float32,
// user-defined pieces beat all others, and control symbols never match text.
func newSentenceUnigram(m *spModel) *unigram {
	u := &unigram{vocabulary: m.vocabulary(), unk: m.unk, narrow: true, scores: make([]float64, len(m.pieces))}
	const smallestNormal = 0x1p-126 // FLT_MIN, the reference's initial maximum, although it is not the lowest value
	least, most := float32(math.MaxFloat32), float32(smallestNormal)
	for _, p := range m.pieces {
		if p.kind == spNormal {
			least, most = min(least, p.score), max(most, p.score)
		}
	}
	u.unkScore = float64(least - unkPenalty)
	var entries []trieEntry
	for i, p := range m.pieces {
		u.scores[i] = float64(p.score)
		switch p.kind {
		case spUser:
			u.scores[i] = float64(float32(len(p.text))*most) - 0.1
			fallthrough
		case spNormal:
			entries = append(entries, trieEntry{p.text, int32(i)})
		}
	}
	u.trie = newTrie(entries)
	if m.byteFallback {
		u.bytes = u.byteTokens()
	}
	return u
}
