package main

import (
	"encoding/binary"
	"hash"

	"github.com/ingotml/ingot/grammar"
)

// digest is a checksum of the masks along the instances of a schema: two builds whose digests are equal allow the same
// tokens.
type digest struct {
	masks hash.Hash32
	n     int
	bytes []byte
}

// add adds a mask, and whether the text may end after the token that was taken.
func (d *digest) add(mask []uint32, m *grammar.Matcher) {
	d.n++
	d.bytes = d.bytes[:0]
	for _, w := range mask {
		d.bytes = binary.LittleEndian.AppendUint32(d.bytes, w)
	}
	if m.Done() {
		d.bytes = append(d.bytes, 1)
	}
	d.masks.Write(d.bytes)
}
