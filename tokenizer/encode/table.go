package encode

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
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

// newWordTable builds the table of a vocabulary, or returns nil if its ids are sparse.
func newWordTable(v *vocabulary) *wordTable {
	if v.sparse != nil {
		return nil
	}
	t := &wordTable{ends: make([]uint32, v.top), count: len(v.ids), empty: -1}
	t.slots = make([]int32, 1<<bits.Len(uint(2*len(v.ids))))
	for i := range t.slots {
		t.slots[i] = -1
	}
	for id, token := range v.dense {
		if t.text = append(t.text, token...); len(t.text) > 1<<31 {
			return nil
		}
		t.ends[id] = uint32(len(t.text))
		if token != "" {
			t.slots[t.slot(token)] = int32(id)
		}
	}
	if id, ok := v.ids[""]; ok {
		t.empty = id
	}
	return t
}

// slot returns the slot of a token, or the free slot where it belongs.
func (t *wordTable) slot(token string) int {
	mask := len(t.slots) - 1
	at := int(wordHash(token)>>32) & mask
	for t.slots[at] >= 0 && t.token(t.slots[at]) != token {
		at = (at + 1) & mask
	}
	return at
}

// token returns the token of an id below len(ends), which shares text; "": there is none, or it is the empty one.
func (t *wordTable) token(id int32) string {
	from := uint32(0)
	if id > 0 {
		from = t.ends[id-1]
	}
	b := t.text[from:t.ends[id]]
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func (t *wordTable) id(token string) (int32, bool) {
	id := t.empty
	if token != "" {
		id = t.slots[t.slot(token)]
	}
	return max(0, id), id >= 0
}

// valid reports whether all ids and offsets are in range and a search ends.
func (t *wordTable) valid() bool {
	last := uint32(0)
	for _, end := range t.ends {
		if end < last {
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
