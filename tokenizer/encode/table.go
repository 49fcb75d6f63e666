package encode

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"
	"unsafe"
)

// wordTable is an immutable map from tokens to ids and back, in three arrays that a file can hold as they are.
type wordTable struct {
	text  []byte   // all tokens, by id
	ends  []uint32 // by id: where the token ends in text; an id without a token has the end of the one before it
	slots []int32  // open addressing: ids by the hash of their token, -1: free; at most half full
	count int      // number of tokens
	empty int32    // id of the empty token, -1: none
}

// wordHash is that of Castagnoli's CRC, which processors compute, spread over all bits.
func wordHash(token string) uint64 {
	sum := crc32.Checksum(unsafe.Slice(unsafe.StringData(token), len(token)), castagnoli)
	return uint64(sum) * 0x9e3779b97f4a7c15
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// entry is a token of a file: text[from:to] of all tokens, in the order of the file.
type entry struct {
	from, to int
	id       int32
}

// newWordTable builds the table of the tokens, whose text it may keep. It returns nil if the ids are sparse, if two
// tokens or two ids are equal, or if the tokens are chosen so that searches would be long.
func newWordTable(text []byte, entries []entry) *wordTable {
	top, inOrder := int32(0), true
	for _, e := range entries {
		inOrder = inOrder && e.id >= top
		top = max(top, e.id+1)
	}
	if int(top) > 2*len(entries)+1<<16 || len(text) > math.MaxInt32 {
		return nil
	}
	if !inOrder {
		text, entries = byID(text, entries)
	}
	t := &wordTable{text: slices.Clip(text), ends: make([]uint32, top), count: len(entries), empty: -1}
	t.slots = slices.Repeat([]int32{-1}, 1<<bits.Len(uint(2*len(entries))))
	next, end := int32(0), uint32(0)
	for _, e := range entries {
		if e.id < next {
			return nil
		}
		for ; next < e.id; next++ {
			t.ends[next] = end
		}
		end = uint32(e.to)
		t.ends[e.id] = end
		next = e.id + 1
		if e.from == e.to {
			if t.empty >= 0 {
				return nil
			}
			t.empty = e.id
			continue
		}
		at := t.slot(t.token(e.id))
		if at < 0 || t.slots[at] >= 0 {
			return nil
		}
		t.slots[at] = e.id
	}
	return t
}

// byID returns the tokens in the order of their ids.
func byID(text []byte, entries []entry) ([]byte, []entry) {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b entry) int { return cmp.Compare(a.id, b.id) })
	out := make([]byte, 0, len(text))
	for i, e := range sorted {
		sorted[i].from = len(out)
		out = append(out, text[e.from:e.to]...)
		sorted[i].to = len(out)
	}
	return out, sorted
}

// slot returns the slot of a token, or the free slot where it belongs; -1 if the search would be long.
func (t *wordTable) slot(token string) int {
	mask := len(t.slots) - 1
	first := int(wordHash(token) >> 32)
	for i := range mostProbes {
		at := (first + i) & mask
		if t.slots[at] < 0 || t.token(t.slots[at]) == token {
			return at
		}
	}
	return -1
}

// token returns the token of an id below len(ends), which shares text; "": there is none, or it is the empty one.
func (t *wordTable) token(id int32) string {
	from := uint32(0)
	if id > 0 {
		from = t.ends[id-1]
	}
	return view(t.text[from:t.ends[id]])
}

// view returns a string that shares b, which must not change while it is used.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (t *wordTable) id(token string) (int32, bool) {
	id := t.empty
	if token != "" {
		id = -1
		if at := t.slot(token); at >= 0 {
			id = t.slots[at]
		}
	}
	return max(0, id), id >= 0
}

// valid reports whether all ids and offsets are in range, all tokens are UTF-8, and a search ends.
func (t *wordTable) valid() bool {
	if !utf8.Valid(t.text) {
		return false
	}
	last := uint32(0)
	for _, end := range t.ends {
		if end < last || uint64(end) < uint64(len(t.text)) && !utf8.RuneStart(t.text[end]) {
			return false
		}
		last = end
	}
	free := 0
	for _, id := range t.slots {
		if id < -1 || int(id) >= len(t.ends) {
			return false
		}
		if id < 0 {
			free++
		}
	}
	n := len(t.slots)
	return int(last) == len(t.text) && free > 0 && n&(n-1) == 0 && t.count >= 0 && t.count <= len(t.ends)+1 &&
		t.empty >= -1 && int(t.empty) < len(t.ends)
}

// littleEndian reports whether arrays of this machine can be written as they are.
func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }
