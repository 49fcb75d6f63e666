package encode

import (
	"math"

	"github.com/ingotml/ingot/tokenizer/trie"
)

func (m *unigram) compile() []byte {
	t := m.table
	if t == nil {
		return nil
	}
	var flags uint64
	if m.bytes != nil {
		flags = 1
	}
	out := appendNumbers([]byte(unigramMark), flags, uint64(t.count), uint64(int64(t.empty)), uint64(int64(m.unk)),
		math.Float64bits(m.unkScore))
	return appendArray(appendArray(appendTable(out, t), m.scores), m.trie.Nodes)
}

// readCompiledUnigram reads the Unigram of a tokenizer.json, or of a tokenizer.model (narrow).
func readCompiledUnigram(r *arrays, narrow bool) (Model, error) {
	var header [5]uint64
	r.numbers(header[:])
	t := r.table(header[1], header[2])
	m := &unigram{vocabulary: &vocabulary{table: t, top: int32(len(t.ends))}, unk: int32(int64(header[3])),
		unkScore: math.Float64frombits(header[4]), narrow: narrow}
	m.scores, m.trie = array[float64](r), &trie.Trie{Nodes: array[trie.Slot](r)}
	if !r.done() || !t.valid() || len(m.scores) != int(m.top) || m.unk < -1 || m.unk >= m.top || !m.trie.Valid(m.top) {
		return nil, ErrCompiled
	}
	if header[0]&1 != 0 {
		m.bytes = m.byteTokens()
	}
	return m, nil
}
