package encode

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/sentencepiece"
	"github.com/ingotml/ingot/tokenizer/trie"
)

// sentenceBPE is the BPE of a SentencePiece model (bpe_model.cc): of the adjacent symbols whose concatenation is a
// piece, it merges the pair with the highest score first, the leftmost of equal ones.
type sentenceBPE struct {
	*vocabulary
	merges  mergeTable
	chars   *wordTable     // the characters that are not pieces; their symbols are from top on
	marked  map[int32]bool // the pieces that no text becomes
	user    *trie.Trie
	unk     int32
	bytes   *[256]int32
	perWord bool // no merge crosses the start of a word
	pool    sync.Pool
}

func newSentenceBPE(m *sentencepiece.Model) (*sentenceBPE, error) {
	for _, p := range m.Marked {
		if p.Kind == sentencepiece.Unused {
			const format = "tokenizer.model: piece %d, %q, is marked as unused, which is not supported for BPE"
			return nil, fault.Errorf(fault.ErrUnsupported, format, p.ID, p.Text)
		}
	}
	b := &sentenceBPE{vocabulary: sentenceVocabulary(m), perWord: true}
	b.follow(m)
	isText := func(p sentencepiece.Piece) bool {
		return p.Kind == sentencepiece.Normal || p.Kind == sentencepiece.UserDefined
	}
	var scores []float32
	var more []byte
	var entries []entry
	seen := map[rune]bool{}
	for _, p := range m.Pieces {
		if !isText(p) {
			continue
		}
		scores = append(scores, p.Score)
		for _, c := range p.Text {
			if seen[c] {
				continue
			}
			seen[c] = true
			if _, ok := b.piece(string(c)); !ok {
				from := len(more)
				more = utf8.AppendRune(more, c)
				entries = append(entries, entry{from, len(more), int32(len(entries))})
			}
		}
		if p.Kind == sentencepiece.UserDefined && crossesWords(p.Text) {
			b.perWord = false
		}
	}
	if b.chars = newWordTable(more, entries); b.chars == nil {
		return nil, errCollide
	}
	slices.SortFunc(scores, func(x, y float32) int { return cmp.Compare(y, x) })
	scores = slices.Compact(scores)
	var merges []mergeSlot
	for i, p := range m.Pieces {
		if !isText(p) {
			continue
		}
		rank, _ := slices.BinarySearchFunc(scores, p.Score, func(x, y float32) int { return cmp.Compare(y, x) })
		for at := range p.Text {
			if at == 0 {
				continue
			}
			left, ok := b.symbol(p.Text[:at])
			if !ok || m.IsUser(left) {
				continue
			}
			right, ok := b.symbol(p.Text[at:])
			if !ok || m.IsUser(right) {
				continue
			}
			merges = append(merges, mergeSlot{pairOf(left, right), uint32(rank), int32(i)})
			if crossesWords(p.Text) {
				b.perWord = false
			}
		}
	}
	var err error
	b.merges, err = newMergeTable(merges)
	return b, err
}

// follow sets what follows from the marked pieces, besides the vocabulary.
func (b *sentenceBPE) follow(m *sentencepiece.Model) {
	b.user, b.unk, b.marked = sentencepiece.UserTrie(m), m.Unk, map[int32]bool{}
	if m.ByteFallback {
		b.bytes = b.byteTokens()
	}
	for _, p := range m.Marked {
		if p.Kind != sentencepiece.UserDefined {
			b.marked[p.ID] = true
		}
	}
}

// piece returns the piece that a text is, if it is one that text can have.
func (b *sentenceBPE) piece(s string) (int32, bool) {
	id, ok := b.ID(s)
	return id, ok && !b.marked[id]
}

// symbol returns the symbol of a text: a piece, or a character of pieces.
func (b *sentenceBPE) symbol(s string) (int32, bool) {
	if id, ok := b.piece(s); ok {
		return id, true
	}
	id, ok := b.chars.id(s)
	return b.top + id, ok
}

// crossesWords reports whether a space mark follows another character.
func crossesWords(s string) bool {
	return strings.Contains(strings.TrimLeft(s, chars.SpaceMark), chars.SpaceMark)
}

func (b *sentenceBPE) Encoder() encoder {
	if e, ok := b.pool.Get().(*sentenceEncoder); ok {
		return e
	}
	return &sentenceEncoder{b: b, cache: newWordCache()}
}

type sentenceEncoder struct {
	b       *sentenceBPE
	cache   *wordCache
	symbols []int32
	merged  []int32
	work    mergeBuffer
}

func (e *sentenceEncoder) Release() {
	e.work.shrink()
	if cap(e.symbols) > maxKept {
		e.symbols, e.merged = nil, nil
	}
	e.b.pool.Put(e)
}

func (e *sentenceEncoder) Append(w *work.Meter, ids []int32, s string) ([]int32, error) {
	start := len(ids)
	if !e.b.perWord {
		ids, err := e.word(w, ids, s)
		return e.b.fuse(ids, start), err
	}
	for s != "" {
		end := wordEnd(s)
		var err error
		if ids, err = e.cached(w, ids, s[:end]); err != nil {
			return ids, err
		}
		s = s[end:]
	}
	return e.b.fuse(ids, start), nil
}

// wordEnd returns the position of the first space mark that follows another character.
func wordEnd(s string) int {
	at := 0
	for strings.HasPrefix(s[at:], chars.SpaceMark) {
		at += len(chars.SpaceMark)
	}
	if next := strings.Index(s[at:], chars.SpaceMark); next >= 0 {
		return at + next
	}
	return len(s)
}

func (e *sentenceEncoder) cached(w *work.Meter, ids []int32, word string) ([]int32, error) {
	slot := e.cache.slot(word)
	if slot != nil && slot.key == word {
		return append(ids, slot.ids...), nil
	}
	n := len(ids)
	ids, err := e.word(w, ids, word)
	if err == nil && slot != nil {
		slot.set(word, ids[n:])
	}
	return ids, err
}

func (e *sentenceEncoder) word(w *work.Meter, ids []int32, s string) (_ []int32, err error) {
	b := e.b
	symbols := e.symbols[:0]
	for s != "" {
		n, id, read := 0, int32(-1), 0
		if b.user != nil {
			n, id, read = b.user.Longest(0, s)
		}
		if err := w.Spend(symbolWork + 2*read); err != nil {
			return ids, err
		}
		if id < 0 {
			_, n = utf8.DecodeRuneInString(s)
			var ok bool
			if id, ok = b.symbol(s[:n]); !ok {
				symbols = b.unknown(symbols, s[:n])
				s = s[n:]
				continue
			}
		}
		symbols = append(symbols, id)
		s = s[n:]
	}
	e.symbols = symbols
	if e.merged, err = b.merges.apply(w, e.merged[:0], symbols, &e.work); err != nil {
		return ids, err
	}
	for _, id := range e.merged {
		if id >= b.top {
			ids = b.unknown(ids, b.chars.token(id-b.top))
		} else {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// unknown appends the ids of a character that is not a piece.
func (b *sentenceBPE) unknown(ids []int32, c string) []int32 {
	if b.bytes == nil {
		return append(ids, b.unk)
	}
	for i := range len(c) {
		ids = append(ids, b.bytes[c[i]])
	}
	return ids
}

// fuse reduces each run of unknown tokens since start to one.
func (b *sentenceBPE) fuse(ids []int32, start int) []int32 {
	if b.bytes != nil {
		return ids
	}
	n := start
	for i := start; i < len(ids); i++ {
		if ids[i] == b.unk && n > start && ids[n-1] == b.unk {
			continue
		}
		ids[n] = ids[i]
		n++
	}
	return ids[:n]
}
