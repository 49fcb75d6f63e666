package encode

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

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
	symbols map[string]int32 // of pieces and characters; ids from len(dense) on are characters that are not pieces
	chars   []string         // the characters that are not pieces
	user    *trie.Trie
	unk     int32
	bytes   *[256]int32
	perWord bool // no merge crosses the start of a word
	pool    sync.Pool
}

func newSentenceBPE(m *sentencepiece.Model) (*sentenceBPE, error) {
	b := &sentenceBPE{vocabulary: sentenceVocabulary(m), merges: newMergeTable(nil), symbols: map[string]int32{},
		user: sentencepiece.UserTrie(m), unk: m.Unk, perWord: true}
	if m.ByteFallback {
		b.bytes = b.byteTokens()
	}
	var scores []float32
	for i, p := range m.Pieces {
		switch p.Kind {
		case sentencepiece.Unused:
			const format = "tokenizer.model: piece %d, %q, is marked as unused, which is not supported for BPE"
			return nil, fault.Errorf(fault.ErrUnsupported, format, i, p.Text)
		case sentencepiece.Normal, sentencepiece.UserDefined:
			b.symbols[p.Text] = int32(i)
			scores = append(scores, p.Score)
			if p.Kind == sentencepiece.UserDefined && crossesWords(p.Text) {
				b.perWord = false
			}
		}
	}
	slices.SortFunc(scores, func(x, y float32) int { return cmp.Compare(y, x) })
	scores = slices.Compact(scores)
	for _, p := range m.Pieces {
		if p.Kind != sentencepiece.Normal && p.Kind != sentencepiece.UserDefined {
			continue
		}
		for _, c := range p.Text {
			if s := string(c); s != p.Text {
				if _, ok := b.symbols[s]; !ok {
					b.symbols[s] = int32(len(m.Pieces) + len(b.chars))
					b.chars = append(b.chars, s)
				}
			}
		}
	}
	for i, p := range m.Pieces {
		if p.Kind != sentencepiece.Normal && p.Kind != sentencepiece.UserDefined {
			continue
		}
		rank, _ := slices.BinarySearchFunc(scores, p.Score, func(x, y float32) int { return cmp.Compare(y, x) })
		for at := range p.Text {
			if at == 0 {
				continue
			}
			left, ok := b.symbols[p.Text[:at]]
			if !ok {
				continue
			}
			right, ok := b.symbols[p.Text[at:]]
			if !ok || m.IsUser(left) || m.IsUser(right) {
				continue
			}
			b.merges.set(left, right, int32(i), uint32(rank))
			if crossesWords(p.Text) {
				b.perWord = false
			}
		}
	}
	return b, nil
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

func (e *sentenceEncoder) Append(ids []int32, s string) ([]int32, error) {
	start := len(ids)
	if !e.b.perWord {
		return e.b.fuse(e.word(ids, s), start), nil
	}
	for s != "" {
		end := wordEnd(s)
		ids = e.cached(ids, s[:end])
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

func (e *sentenceEncoder) cached(ids []int32, word string) []int32 {
	slot := e.cache.slot(word)
	if slot != nil && slot.key == word {
		return append(ids, slot.ids...)
	}
	n := len(ids)
	ids = e.word(ids, word)
	if slot != nil {
		slot.set(word, ids[n:])
	}
	return ids
}

func (e *sentenceEncoder) word(ids []int32, s string) []int32 {
	b := e.b
	symbols := e.symbols[:0]
	for s != "" {
		n, id := 0, int32(-1)
		if b.user != nil {
			n, id = b.user.Longest(0, s)
		}
		if id < 0 {
			_, n = utf8.DecodeRuneInString(s)
			var ok bool
			if id, ok = b.symbols[s[:n]]; !ok {
				symbols = b.unknown(symbols, s[:n])
				s = s[n:]
				continue
			}
		}
		symbols = append(symbols, id)
		s = s[n:]
	}
	e.symbols = symbols
	e.merged = b.merges.apply(e.merged[:0], symbols, &e.work)
	for _, id := range e.merged {
		if int(id) >= len(b.dense) {
			ids = b.unknown(ids, b.chars[int(id)-len(b.dense)])
		} else {
			ids = append(ids, id)
		}
	}
	return ids
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
