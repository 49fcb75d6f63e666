package encode

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/ingotml/ingot/tokenizer/sentencepiece"
	"github.com/ingotml/ingot/tokenizer/trie"
)

// ErrCompiled reports that a compiled model cannot be read.
var ErrCompiled = errors.New("not a compiled model of this version")

// Marks of the formats. The last byte is the version.
const (
	bpeMark      = "ingot-bpe\x02"
	sentenceMark = "ingot-spb\x02"
	unigramMark  = "ingot-uni\x02"
)

// Compile returns a model in a form that Compiled or CompiledSentencePiece reads in a few milliseconds, or nil for
// models that have none. Call it after FollowSplit.
func Compile(m Model) []byte {
	if !littleEndian() {
		return nil
	}
	switch m := m.(type) {
	case *bpe:
		return m.compile()
	case *unigram:
		return m.compile()
	case *sentenceBPE:
		return m.compile()
	}
	return nil
}

// Compiled returns the model of a tokenizer.json from its compiled form, which it keeps. The model is equal to the
// compiled one once FollowSplit was called with the same arguments. It checks every index, so no input makes a model
// that panics.
func Compiled(data []byte) (Model, error) {
	r := arrays{data: data}
	switch r.mark() {
	case bpeMark:
		return readCompiledBPE(&r)
	case unigramMark:
		return readCompiledUnigram(&r, false)
	}
	return nil, ErrCompiled
}

// CompiledSentencePiece is Compiled for the model of a tokenizer.model, whose header says what the form does not.
func CompiledSentencePiece(data []byte, header *sentencepiece.Model) (Model, error) {
	r := arrays{data: data}
	var m Model
	err := ErrCompiled
	switch mark := r.mark(); {
	case mark == sentenceMark && header.Kind == 2:
		m, err = readCompiledSentences(&r, header)
	case mark == unigramMark && header.Kind == 1:
		m, err = readCompiledUnigram(&r, true)
	}
	if err != nil || int(m.Limit()) != header.Size {
		return nil, ErrCompiled
	}
	return m, nil
}

// appendNumbers appends numbers of 8 bytes.
func appendNumbers(out []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		out = binary.LittleEndian.AppendUint64(out, n)
	}
	return out
}

// appendTable appends a table's arrays. Its count and its empty token are in the header of the form.
func appendTable(out []byte, t *wordTable) []byte {
	return appendArray(appendArray(appendArray(out, t.text), t.ends), t.slots)
}

// element is what arrays have: numbers, and structures of them without gaps.
type element interface {
	byte | uint32 | int32 | float64 | mergeSlot | trie.Slot
}

// appendArray appends the length of an array in bytes, zeros up to a multiple of 8, and the array as memory has it.
func appendArray[T element](out []byte, a []T) []byte {
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

// mark returns the mark of the form; "" if this machine cannot read forms.
func (r *arrays) mark() string {
	if !littleEndian() {
		return ""
	}
	return string(r.take(len(bpeMark)))
}

// numbers fills to with numbers of 8 bytes.
func (r *arrays) numbers(to []uint64) {
	for i := range to {
		if b := r.take(8); b != nil {
			to[i] = binary.LittleEndian.Uint64(b)
		}
	}
}

// table returns a table, which the caller checks.
func (r *arrays) table(count, empty uint64) *wordTable {
	t := &wordTable{count: int(count), empty: int32(int64(empty))}
	t.text, t.ends, t.slots = array[byte](r), array[uint32](r), array[int32](r)
	return t
}

// done reports whether all was read, and nothing was missing.
func (r *arrays) done() bool { return !r.bad && len(r.data) == 0 }

func (r *arrays) take(n int) []byte {
	if n < 0 || n > len(r.data) {
		r.bad = true
		return nil
	}
	b := r.data[:n:n]
	r.data, r.at = r.data[n:], r.at+n
	return b
}

func array[T element](r *arrays) []T {
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
