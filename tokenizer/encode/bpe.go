package encode

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/fault"
)

// bpe is byte pair encoding: a piece starts as one symbol per character, and the adjacent pair with the lowest merge
// rank is merged until none is left.
type bpe struct {
	*vocabulary
	merges       mergeTable
	unk          string // token for characters that are not in the vocabulary
	hasUnk       bool
	fuseUnk      bool   // one unk for a run of unknown characters
	byteFallback bool   // an unknown character becomes the <0xNN> tokens of its bytes, if all exist
	prefix       string // of each character but the first
	suffix       string // of the last character
	ignoreMerges bool   // a piece that is a token is encoded as that token
	rankByID     bool   // merges rank by the ids of their tokens, set while the model is read
	perWord      bool   // no merge crosses the start of a word, so words are merged one by one, see canSplitWords
	compiled     bool   // perWord is that of the compiled model

	// raw: pieces arrive as plain bytes instead of byte-level characters, and symbols are looked up by byte.
	raw     bool
	byteIDs [256]int32 // -1: not in the vocabulary

	pool sync.Pool // of *bpeEncoder
}

// FollowSplit lets a BPE take advantage of how the text is split. raw makes the pieces plain bytes and reports whether
// it did; nil: it cannot.
func FollowSplit(m Model, raw func() bool) {
	b, ok := m.(*bpe)
	if !ok {
		return
	}
	if raw != nil && b.useRaw() {
		b.raw = raw()
	}
	if !b.compiled {
		b.perWord = b.canSplitWords()
	}
}

// useRaw prepares the model for raw bytes. It returns false if a prefix, a suffix or byte fallback applies to
// characters.
func (m *bpe) useRaw() bool {
	if m.prefix != "" || m.suffix != "" || m.byteFallback {
		return false
	}
	m.raw = true
	for b := range m.byteIDs {
		id, ok := m.ID(string(chars.ByteToRune[b]))
		if !ok {
			id = -1
		}
		m.byteIDs[b] = id
	}
	return true
}

func (m *bpe) Encoder() encoder {
	if e, ok := m.pool.Get().(*bpeEncoder); ok {
		return e
	}
	return &bpeEncoder{m: m, cache: newWordCache()}
}

type bpeEncoder struct {
	m       *bpe
	cache   *wordCache
	symbols []int32
	work    mergeBuffer
	scratch []byte
}

func (e *bpeEncoder) Release() {
	e.work.shrink()
	if cap(e.symbols) > maxKept {
		e.symbols = nil
	}
	e.m.pool.Put(e)
}

// canSplitWords reports whether a text can be split where a space mark follows another character: no merge joins the
// two sides, and the mark is in the vocabulary, so that it ends a run of unknown characters.
func (m *bpe) canSplitWords() bool {
	_, marked := m.ID(chars.SpaceMark)
	if !marked || m.prefix != "" || m.suffix != "" || m.ignoreMerges || m.raw {
		return false
	}
	for i := range m.merges.slots {
		s := &m.merges.slots[i]
		if s.pair == freePair {
			continue
		}
		left, _ := m.Token(int32(s.pair >> 32))
		right, _ := m.Token(int32(uint32(s.pair)))
		if strings.HasPrefix(right, chars.SpaceMark) && !strings.HasSuffix(left, chars.SpaceMark) {
			return false
		}
	}
	return true
}

func (e *bpeEncoder) Append(w *work.Meter, ids []int32, piece string) (_ []int32, err error) {
	for e.m.perWord {
		end := wordEnd(piece)
		if end == len(piece) {
			break
		}
		if ids, err = e.word(w, ids, piece[:end]); err != nil {
			return ids, err
		}
		piece = piece[end:]
	}
	return e.word(w, ids, piece)
}

func (e *bpeEncoder) word(w *work.Meter, ids []int32, piece string) ([]int32, error) {
	if e.m.raw && len(piece) == 1 && e.m.byteIDs[piece[0]] >= 0 {
		return append(ids, e.m.byteIDs[piece[0]]), nil
	}
	slot := e.cache.slot(piece)
	if slot != nil && slot.key == piece {
		return append(ids, slot.ids...), nil
	}
	n := len(ids)
	ids, err := e.tokenize(w, ids, piece)
	if err == nil && slot != nil {
		slot.set(piece, ids[n:])
	}
	return ids, err
}

func (e *bpeEncoder) tokenize(w *work.Meter, ids []int32, piece string) ([]int32, error) {
	m := e.m
	if m.ignoreMerges {
		token := piece
		if m.raw {
			token = chars.ToByteLevel(piece)
		}
		if id, ok := m.ID(token); ok {
			return append(ids, id), nil
		}
	}
	var err error
	if e.symbols, err = m.split(w, e.symbols[:0], piece, &e.scratch); err != nil {
		return ids, err
	}
	return m.merges.apply(w, ids, e.symbols, &e.work)
}

// symbolWork is what finding a character's symbol costs.
const symbolWork = 32

// split returns the initial symbols of a piece.
func (m *bpe) split(w *work.Meter, symbols []int32, piece string, scratch *[]byte) ([]int32, error) {
	u := unknown{m: m}
	if m.raw {
		if err := w.Spend(len(piece)); err != nil {
			return nil, err
		}
		for i := 0; i < len(piece); i++ {
			if id := m.byteIDs[piece[i]]; id >= 0 {
				symbols = append(u.flush(symbols), id)
			} else if err := u.add(&symbols, string(chars.ByteToRune[piece[i]])); err != nil {
				return nil, err
			}
		}
		return u.flush(symbols), nil
	}
	for i := 0; i < len(piece); {
		if err := w.Spend(symbolWork); err != nil {
			return nil, err
		}
		_, n := utf8.DecodeRuneInString(piece[i:])
		s := (*scratch)[:0]
		if i > 0 {
			s = append(s, m.prefix...)
		}
		s = append(s, piece[i:i+n]...)
		if i += n; i == len(piece) {
			s = append(s, m.suffix...)
		}
		*scratch = s
		if id, ok := m.ID(string(s)); ok {
			symbols = append(u.flush(symbols), id)
		} else if fallback, ok := m.bytes(symbols, s); ok {
			symbols = fallback // a pending unk stays pending, as in the reference
		} else if err := u.add(&symbols, string(s)); err != nil {
			return nil, err
		}
	}
	return u.flush(symbols), nil
}

// bytes appends the byte tokens of a character if byte fallback is on and all of them exist.
func (m *bpe) bytes(symbols []int32, s []byte) ([]int32, bool) {
	if !m.byteFallback {
		return nil, false
	}
	n := len(symbols)
	for _, b := range s {
		id, ok := m.ID(fmt.Sprintf("<0x%02X>", b))
		if !ok {
			return symbols[:n], false
		}
		symbols = append(symbols, id)
	}
	return symbols, true
}

// unknown is a pending unk token. It is written before the next known character, because until then further unknown
// characters may fuse with it.
type unknown struct {
	m       *bpe
	pending bool
	id      int32
}

func (u *unknown) flush(symbols []int32) []int32 {
	if !u.pending {
		return symbols
	}
	u.pending = false
	return append(symbols, u.id)
}

// add records a character that is not in the vocabulary. Without an unk token it is dropped.
func (u *unknown) add(symbols *[]int32, s string) error {
	if !u.m.hasUnk {
		return nil
	}
	id, ok := u.m.ID(u.m.unk)
	if !ok {
		return fault.Errorf(fault.ErrToken, "encode: %q has no token, and unk_token %q is not in the vocabulary", s, u.m.unk)
	}
	if !u.m.fuseUnk {
		*symbols = u.flush(*symbols)
	}
	u.pending, u.id = true, id
	return nil
}
