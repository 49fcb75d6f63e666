package encode

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"
	"unsafe"
)

// ErrCompiled reports that a compiled model cannot be read.
var ErrCompiled = errors.New("not a compiled model of this version")

// compiledMark identifies the format; its last byte is the version.
const compiledMark = "ingot-bpe\x01"

// Compile returns a model in a form that Compiled reads in a few milliseconds, or nil for models that load fast anyway.
// Call it after FollowSplit.
func Compile(m Model) []byte {
	b, ok := m.(*bpe)
	if !ok || !littleEndian() {
		return nil
	}
	t := b.table
	if t == nil {
		return nil
	}
	var flags uint64
	for i, on := range []bool{b.hasUnk, b.fuseUnk, b.byteFallback, b.ignoreMerges, b.perWord} {
		if on {
			flags |= 1 << i
		}
	}
	out := []byte(compiledMark)
	merges := b.merges
	for _, n := range []uint64{
		flags, uint64(t.count), uint64(int64(t.empty)), uint64(merges.used), uint64(merges.shift),
	} {
		out = binary.LittleEndian.AppendUint64(out, n)
	}
	for _, s := range []string{b.unk, b.prefix, b.suffix} {
		out = appendArray(out, []byte(s))
	}
	out = appendArray(out, t.text)
	out = appendArray(out, t.ends)
	out = appendArray(out, t.slots)
	return appendArray(out, merges.slots)
}

// Compiled returns the model of a compiled form, which it keeps. The model is equal to the compiled one once
// FollowSplit was called with the same arguments. It checks every index, so no input makes a model that panics.
func Compiled(data []byte) (Model, error) {
	r := arrays{data: data}
	if !littleEndian() || string(r.take(len(compiledMark))) != compiledMark {
		return nil, ErrCompiled
	}
	var header [5]uint64
	for i := range header {
		if b := r.take(8); b != nil {
			header[i] = binary.LittleEndian.Uint64(b)
		}
	}
	flags := header[0]
	on := func(i int) bool { return flags>>i&1 != 0 }
	t := &wordTable{count: int(header[1]), empty: int32(int64(header[2]))}
	m := &bpe{vocabulary: &vocabulary{table: t}, hasUnk: on(0), fuseUnk: on(1), byteFallback: on(2), ignoreMerges: on(3),
		perWord: on(4), compiled: true}
	for _, s := range []*string{&m.unk, &m.prefix, &m.suffix} {
		*s = string(array[byte](&r))
		r.bad = r.bad || !utf8.ValidString(*s)
	}
	t.text, t.ends, t.slots = array[byte](&r), array[uint32](&r), array[int32](&r)
	m.merges = mergeTable{slots: array[mergeSlot](&r), used: int(header[3]), shift: uint(header[4])}
	m.top = int32(len(t.ends))
	if r.bad || len(r.data) > 0 || !t.valid() || !m.merges.valid(m.top) {
		return nil, ErrCompiled
	}
	return m, nil
}

// valid reports whether all ids are below limit and a search ends.
func (t *mergeTable) valid(limit int32) bool {
	free, n := 0, len(t.slots)
	for _, s := range t.slots {
		if s.pair == freePair {
			free++
		} else if left := int32(s.pair >> 32); left < 0 || left >= limit || s.id < 0 || s.id >= limit ||
			int32(uint32(s.pair)) < 0 || int32(uint32(s.pair)) >= limit {
			return false
		}
	}
	return free > 0 && n&(n-1) == 0 && t.used == n-free && t.shift < 64 && 1<<(64-t.shift) == n
}

// appendArray appends the length of an array in bytes, zeros up to a multiple of 8, and the array as memory has it.
func appendArray[T byte | uint32 | int32 | mergeSlot](out []byte, a []T) []byte {
	var b []byte
	if len(a) > 0 {
		b = unsafe.Slice((*byte)(unsafe.Pointer(&a[0])), len(a)*int(unsafe.Sizeof(a[0])))
	}
	out = binary.LittleEndian.AppendUint64(out, uint64(len(b)))
	for len(out)%8 != 0 {
		out = append(out, 0)
	}
	return append(out, b...)
}

// arrays reads what appendArray wrote.
type arrays struct {
	data []byte
	at   int
	bad  bool
}

func (r *arrays) take(n int) []byte {
	if n < 0 || n > len(r.data) {
		r.bad = true
		return nil
	}
	b := r.data[:n:n]
	r.data, r.at = r.data[n:], r.at+n
	return b
}

func array[T byte | uint32 | int32 | mergeSlot](r *arrays) []T {
	var one T
	head := r.take(8)
	if head == nil {
		return nil
	}
	size := binary.LittleEndian.Uint64(head)
	r.take((8 - r.at%8) % 8)
	if size > uint64(len(r.data)) || size%uint64(unsafe.Sizeof(one)) != 0 {
		r.bad = true
		return nil
	}
	b := r.take(int(size))
	if len(b) == 0 {
		return nil
	}
	p := unsafe.Pointer(&b[0])
	if uintptr(p)%unsafe.Alignof(one) != 0 { // of a slice that is not the start of its allocation
		b = append(make([]byte, 0, len(b)), b...)
		p = unsafe.Pointer(&b[0])
	}
	return unsafe.Slice((*T)(p), len(b)/int(unsafe.Sizeof(one)))
}
