package encode

import (
	"slices"
	"unicode/utf8"

	"github.com/ingotml/ingot/tokenizer/sentencepiece"
)

func (m *bpe) compile() []byte {
	t := m.table
	if t == nil {
		return nil
	}
	var flags uint64
	for i, on := range []bool{m.hasUnk, m.fuseUnk, m.byteFallback, m.ignoreMerges, m.perWord} {
		if on {
			flags |= 1 << i
		}
	}
	out := appendNumbers([]byte(bpeMark), flags, uint64(t.count), uint64(int64(t.empty)), uint64(m.merges.used),
		uint64(m.merges.shift))
	for _, s := range []string{m.unk, m.prefix, m.suffix} {
		out = appendArray(out, []byte(s))
	}
	return appendArray(appendTable(out, t), m.merges.slots)
}

func readCompiledBPE(r *arrays) (Model, error) {
	var header [5]uint64
	r.numbers(header[:])
	on := func(i int) bool { return header[0]>>i&1 != 0 }
	m := &bpe{hasUnk: on(0), fuseUnk: on(1), byteFallback: on(2), ignoreMerges: on(3), perWord: on(4), compiled: true}
	for _, s := range []*string{&m.unk, &m.prefix, &m.suffix} {
		*s = string(array[byte](r))
		r.bad = r.bad || !utf8.ValidString(*s)
	}
	t := r.table(header[1], header[2])
	m.merges = mergeTable{slots: array[mergeSlot](r), used: int(header[3]), shift: uint(header[4])}
	m.vocabulary = &vocabulary{table: t, top: int32(len(t.ends))}
	if !r.done() || !t.valid() || !m.merges.valid(m.top, m.top) {
		return nil, ErrCompiled
	}
	return m, nil
}

// valid reports whether all symbols are below symbols, all merged ids below ids, and a search ends.
func (t *mergeTable) valid(symbols, ids int32) bool {
	free, n := 0, len(t.slots)
	for _, s := range t.slots {
		if s.pair == freePair {
			free++
		} else if left := int32(s.pair >> 32); left < 0 || left >= symbols || s.id < 0 || s.id >= ids ||
			int32(uint32(s.pair)) < 0 || int32(uint32(s.pair)) >= symbols {
			return false
		}
	}
	return free > 0 && n&(n-1) == 0 && t.used == n-free && t.shift < 64 && 1<<(64-t.shift) == n
}

func (b *sentenceBPE) compile() []byte {
	t := b.table
	if t == nil {
		return nil
	}
	var flags uint64
	if b.perWord {
		flags = 1
	}
	out := appendNumbers([]byte(sentenceMark), flags, uint64(t.count), uint64(b.chars.count), uint64(b.merges.used),
		uint64(b.merges.shift))
	return appendArray(appendTable(appendTable(out, t), b.chars), b.merges.slots)
}

func readCompiledSentences(r *arrays, m *sentencepiece.Model) (Model, error) {
	const none = ^uint64(0) // no piece is empty
	var header [5]uint64
	r.numbers(header[:])
	t, chars := r.table(header[1], none), r.table(header[2], none)
	b := &sentenceBPE{vocabulary: &vocabulary{table: t, top: int32(len(t.ends))}, chars: chars, perWord: header[0]&1 != 0}
	b.merges = mergeTable{slots: array[mergeSlot](r), used: int(header[3]), shift: uint(header[4])}
	if !r.done() || !t.valid() || !chars.valid() || !b.merges.valid(b.top+int32(len(chars.ends)), b.top) {
		return nil, ErrCompiled
	}
	b.follow(m)
	if b.bytes != nil && slices.Contains(b.bytes[:], -1) {
		return nil, ErrCompiled
	}
	return b, nil
}
