package tokenizer

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// sentenceBPE is the BPE of a SentencePiece model (bpe_model.cc): of the adjacent symbols whose concatenation is a
// piece, it merges the pair with the highest score first, the leftmost of equal ones.
type sentenceBPE struct {
	*vocabulary
	merges  mergeTable
	symbols map[string]int32 // of pieces and characters; ids from len(dense) on are characters that are not pieces
	chars   []string         // the characters that are not pieces
	user    *trie
	unk     int32
	bytes   *[256]int32
	perWord bool // no merge crosses the start of a word
	pool    sync.Pool
}

func newSentenceBPE(m *spModel) (*sentenceBPE, error) {
	b := &sentenceBPE{vocabulary: m.vocabulary(), merges: newMergeTable(), symbols: map[string]int32{},
		user: m.userDefined(), unk: m.unk, perWord: true}
	if m.byteFallback {
		b.bytes = b.byteTokens()
	}
	var scores []float32
	for i, p := range m.pieces {
		switch p.kind {
		case spUnused:
			const format = "tokenizer.model: piece %d, %q, is marked as unused, which is not supported for BPE"
			return nil, failure(ErrUnsupported, format, i, p.text)
		case spNormal, spUser:
			b.symbols[p.text] = int32(i)
			scores = append(scores, p.score)
			if p.kind == spUser && crossesWords(p.text) {
				b.perWord = false
			}
		}
	}
	slices.SortFunc(scores, func(x, y float32) int { return cmp.Compare(y, x) })
	scores = slices.Compact(scores)
	for _, p := range m.pieces {
		if p.kind != spNormal && p.kind != spUser {
			continue
		}
		for _, c := range p.text {
			if s := string(c); s != p.text {
				if _, ok := b.symbols[s]; !ok {
					b.symbols[s] = int32(len(m.pieces) + len(b.chars))
					b.chars = append(b.chars, s)
				}
			}
		}
	}
	for i, p := range m.pieces {
		if p.kind != spNormal && p.kind != spUser {
			continue
		}
		rank, _ := slices.BinarySearchFunc(scores, p.score, func(x, y float32) int { return cmp.Compare(y, x) })
		for at := range p.text {
			if at == 0 {
				continue
			}
			left, ok := b.symbols[p.text[:at]]
			if !ok {
				continue
			}
			right, ok := b.symbols[p.text[at:]]
			if !ok || m.isUser(left) || m.isUser(right) {
				continue
			}
			b.merges.set(left, right, int32(i), uint32(rank))
			if crossesWords(p.text) {
				b.perWord = false
			}
		}
	}
	return b, nil
}

// isUser reports whether a symbol is a user-defined piece. These never merge.
func (m *spModel) isUser(id int32) bool {
	return int(id) < len(m.pieces) && m.pieces[id].kind == spUser
}

// crossesWords reports whether a space mark follows another character.
func crossesWords(s string) bool {
	return strings.Contains(strings.TrimLeft(s, spaceMark), spaceMark)
}

func (b *sentenceBPE) encoder() encoder {
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

func (e *sentenceEncoder) release() {
	e.work.shrink()
	if cap(e.symbols) > maxKept {
		e.symbols, e.merged = nil, nil
	}
	e.b.pool.Put(e)
}

func (e *sentenceEncoder) append(ids []int32, s string) ([]int32, error) {
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
	for strings.HasPrefix(s[at:], spaceMark) {
		at += len(spaceMark)
	}
	if next := strings.Index(s[at:], spaceMark); next >= 0 {
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
			n, id = b.user.longest(0, s)
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
