package blake3

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// See https://github.com/BLAKE3-team/BLAKE3-specs, sections 2.1 to 2.6.
const (
	blockSize = 64
	chunkSize = 1024
	lanesWide = 16
	maxTree   = 256 // chunks of a subtree that is hashed at once

	flagChunkStart = 1
	flagChunkEnd   = 2
	flagParent     = 4
	flagRoot       = 8
)

// value is a chaining value.
type value [8]uint32

var initial = value{
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
}

// lanes are the parameters of hash16.
type lanes struct {
	stride, blocks     uint64
	low, high          [lanesWide]uint32 // the counter of each lane
	flags, first, last uint32            // of all blocks, of the first, of the last
}

// node is a block that is not compressed yet, because only the end of the input tells whether it is the root.
type node struct {
	chain   value
	block   [16]uint32
	counter uint64
	length  uint32
	flags   uint32
}

// tree hashes with hash16.
type tree struct {
	stack  [54]value // by height: complete subtrees that have no sibling yet
	chunks uint64    // in the stack; its bits say which heights are in use
	rest   [lanesWide * chunkSize]byte
	held   int // bytes in rest, which the end of the input may be in
	values [maxTree]value
	lanes  lanes
}

func (t *tree) write(p []byte) {
	if t.held > 0 {
		n := copy(t.rest[t.held:], p)
		t.held, p = t.held+n, p[n:]
		if len(p) == 0 {
			return
		}
		t.push(t.subtree(t.rest[:]), bits.TrailingZeros(lanesWide))
		t.held = 0
	}
	for len(p) > len(t.rest) {
		n := uint64(len(p)-1) / chunkSize // the last chunk may be the root
		height := min(bits.TrailingZeros64(t.chunks|maxTree), bits.Len64(n)-1)
		size := chunkSize << height
		t.push(t.subtree(p[:size]), height)
		p = p[size:]
	}
	t.held = copy(t.rest[:], p)
}

// subtree hashes a power of two of chunks, at least 16, which follow those in the stack.
func (t *tree) subtree(p []byte) value {
	n := len(p) / chunkSize
	t.leaves(p)
	for ; n > 1; n /= 2 {
		t.parents(n / 2)
	}
	return t.values[0]
}

// leaves computes the values of chunks, 16 at a time, which follow those in the stack.
func (t *tree) leaves(p []byte) {
	t.lanes = lanes{stride: chunkSize, blocks: chunkSize / blockSize, first: flagChunkStart, last: flagChunkEnd}
	for i := 0; i < len(p)/chunkSize; i += lanesWide {
		for j := range uint64(lanesWide) {
			at := t.chunks + uint64(i) + j
			t.lanes.low[j], t.lanes.high[j] = uint32(at), uint32(at>>32)
		}
		hash16((*[lanesWide]value)(t.values[i:]), &p[i*chunkSize], &t.lanes)
	}
}

// parents replaces 2n values by those of their n parents, and overwrites those up to the next multiple of 16. hash16
// reads all of a block before it writes.
func (t *tree) parents(n int) {
	t.lanes = lanes{stride: blockSize, blocks: 1, flags: flagParent}
	for i := 0; i < n; i += lanesWide {
		hash16((*[lanesWide]value)(t.values[i:]), (*byte)(unsafe.Pointer(&t.values[2*i])), &t.lanes)
	}
}

// push adds the subtree that follows those in the stack.
func (t *tree) push(v value, height int) {
	at := height
	for ; t.chunks>>at&1 != 0; at++ {
		n := parentNode(t.stack[at], v)
		v = n.value()
	}
	t.stack[at] = v
	t.chunks += 1 << height
}

// sum returns the hash of all that was written. Nothing can be written after it.
func (t *tree) sum() (out [Size]byte) {
	p := t.rest[:t.held]
	t.leaves(t.rest[:])
	for i := 0; len(p) > chunkSize; i++ {
		t.push(t.values[i], 0)
		p = p[chunkSize:]
	}
	t.held = copy(t.rest[:], p)
	n := chunkNode(p, t.chunks)
	for left := t.chunks; left != 0; left &= left - 1 {
		n = parentNode(t.stack[bits.TrailingZeros64(left)], n.value())
	}
	n.flags |= flagRoot
	for i, w := range n.value() {
		binary.LittleEndian.PutUint32(out[4*i:], w)
	}
	return out
}

// chunkNode returns the last block of a chunk, and compresses those before it.
func chunkNode(p []byte, counter uint64) node {
	n := node{chain: initial, counter: counter, length: blockSize, flags: flagChunkStart}
	for ; len(p) > blockSize; p = p[blockSize:] {
		n.read(p[:blockSize])
		n.chain, n.flags = n.value(), 0
	}
	var last [blockSize]byte
	n.length = uint32(copy(last[:], p))
	n.read(last[:])
	n.flags |= flagChunkEnd
	return n
}

func parentNode(left, right value) node {
	n := node{chain: initial, length: blockSize, flags: flagParent}
	copy(n.block[:8], left[:])
	copy(n.block[8:], right[:])
	return n
}

func (n *node) read(p []byte) {
	for i := range n.block {
		n.block[i] = binary.LittleEndian.Uint32(p[4*i:])
	}
}

// schedule gives the order of a block's words in each round.
var schedule = [7][16]uint8{
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8},
	{3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1},
	{10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6},
	{12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4},
	{9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7},
	{11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13},
}

// value compresses a node.
func (n *node) value() (out value) {
	s := [16]uint32{
		n.chain[0], n.chain[1], n.chain[2], n.chain[3], n.chain[4], n.chain[5], n.chain[6], n.chain[7],
		initial[0], initial[1], initial[2], initial[3], uint32(n.counter), uint32(n.counter >> 32), n.length, n.flags,
	}
	for _, order := range &schedule {
		for i := range 4 {
			mix(&s, i, 4+i, 8+i, 12+i, n.block[order[2*i]], n.block[order[2*i+1]])
		}
		for i := range 4 {
			mix(&s, i, 4+(i+1)%4, 8+(i+2)%4, 12+(i+3)%4, n.block[order[8+2*i]], n.block[order[9+2*i]])
		}
	}
	for i := range out {
		out[i] = s[i] ^ s[i+8]
	}
	return out
}

func mix(s *[16]uint32, a, b, c, d int, x, y uint32) {
	s[a] += s[b] + x
	s[d] = bits.RotateLeft32(s[d]^s[a], -16)
	s[c] += s[d]
	s[b] = bits.RotateLeft32(s[b]^s[c], -12)
	s[a] += s[b] + y
	s[d] = bits.RotateLeft32(s[d]^s[a], -8)
	s[c] += s[d]
	s[b] = bits.RotateLeft32(s[b]^s[c], -7)
}
