// Package scores keeps the logits of a base model over a text, so that several models are compared with it without
// running it again.
//
// Contract:
//   - A file holds the records of one key, which the caller makes of everything that the logits depend on. A record
//     is an array of logits, stored exactly: in two bytes each if all are bfloat16 or float16 values, else in four.
//   - Files are complete or absent: they are renamed when they are. A damaged record is an error of [Reader.Next],
//     after which the caller computes the rest itself.
//   - The folder holds at most a number of bytes; the least recently used files are removed first.
//   - Several processes may share a folder. A Reader or a Writer is used by one goroutine at a time.
package scores

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/place"
)

// Cache is a folder with scores. The zero value keeps nothing.
type Cache struct {
	Dir      string // created when needed; empty: nothing is kept
	MaxBytes int64  // of all files; 0: limits.ScoreCache
}

const (
	extension  = ".scores"
	partSuffix = ".part"
	partLife   = 24 * time.Hour // age after which a file is not being written any more
	version    = "ingot scores 1\n"
	headBytes  = 12 // of a record: encoding, number of logits, checksum
)

// Encodings of a record.
const (
	float32s = iota
	bfloat16s
	float16s
)

var checksums = crc32.MakeTable(crc32.Castagnoli)

func (c Cache) path(key string) string {
	return filepath.Join(c.Dir, fmt.Sprintf("%x", sha256.Sum256([]byte(key)))+extension)
}

// Reader reads the records of a key.
type Reader struct {
	f    *os.File
	from *bufio.Reader
}

// Open returns the records of a key, or nil if there are none.
func (c Cache) Open(key string) *Reader {
	if c.Dir == "" {
		return nil
	}
	f, err := place.Open(c.path(key))
	if err != nil {
		return nil
	}
	r := &Reader{f, bufio.NewReaderSize(f, 1<<20)}
	head := make([]byte, len(version))
	if _, err := io.ReadFull(r.from, head); err != nil || string(head) != version {
		r.Remove()
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(f.Name(), now, now) // for the order of use
	return r
}

// errDamaged reports a record that is not as it was written.
var errDamaged = errors.New("cached scores are damaged")

// Next returns the next record, which has n logits.
func (r *Reader) Next(n int) ([]float32, error) {
	head := make([]byte, headBytes)
	if _, err := io.ReadFull(r.from, head); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	width, kind := 2, binary.LittleEndian.Uint32(head)
	if kind == float32s {
		width = 4
	}
	if kind > float16s || binary.LittleEndian.Uint32(head[4:]) != uint32(n) {
		return nil, errDamaged
	}
	data := make([]byte, n*width)
	if _, err := io.ReadFull(r.from, data); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if crc32.Checksum(data, checksums) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, errDamaged
	}
	return decode(kind, data, n), nil
}

// Close closes the file.
func (r *Reader) Close() { _ = r.f.Close() }

// Remove closes and removes the file, which is damaged.
func (r *Reader) Remove() {
	r.Close()
	_ = os.Remove(r.f.Name())
}

// Writer writes the records of a key.
type Writer struct {
	c    Cache
	key  string
	f    *os.File
	to   *bufio.Writer
	size int64
	err  error // why the records are not kept
}

// Create returns a writer of the records of a key. A writer that cannot write keeps nothing: that is no error, because
// the scores are computed anyway.
func (c Cache) Create(key string) *Writer {
	w := &Writer{c: c, key: key}
	w.c.MaxBytes = cmp.Or(c.MaxBytes, limits.ScoreCache)
	if w.err = os.ErrInvalid; c.Dir == "" {
		return w
	}
	if w.err = os.MkdirAll(c.Dir, 0o700); w.err != nil {
		return w
	}
	if w.f, w.err = os.CreateTemp(c.Dir, "*"+partSuffix); w.err != nil {
		return w
	}
	w.to = bufio.NewWriterSize(w.f, 1<<20)
	w.write([]byte(version))
	return w
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	if w.size += int64(len(b)); w.size > w.c.MaxBytes {
		w.err = fmt.Errorf("scores of more than %d bytes are not kept", w.c.MaxBytes)
		return
	}
	_, w.err = w.to.Write(b)
}

// Add writes a record.
func (w *Writer) Add(logits []float32) {
	if w.err != nil {
		return
	}
	kind, data := encode(logits)
	head := binary.LittleEndian.AppendUint32(nil, kind)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(logits)))
	w.write(binary.LittleEndian.AppendUint32(head, crc32.Checksum(data, checksums)))
	w.write(data)
}

// Keep completes the file, and removes others to make space for it.
func (w *Writer) Keep() {
	defer w.Drop()
	if w.err == nil {
		w.err = w.to.Flush()
	}
	if w.err != nil {
		return
	}
	w.err = w.f.Close()
	w.c.trim(w.c.MaxBytes - w.size)
	if w.err == nil {
		w.err = os.Rename(w.f.Name(), w.c.path(w.key))
	}
}

// Drop removes what was written, unless Keep has completed it.
func (w *Writer) Drop() {
	if w.f != nil {
		_ = w.f.Close()
		_ = os.Remove(w.f.Name())
	}
}

// trim removes the least recently used files until the others have at most some bytes, and files that no process
// writes any more.
func (c Cache) trim(most int64) {
	type file struct {
		path string
		size int64
		used time.Time
	}
	var files []file
	var total int64
	entries, _ := os.ReadDir(c.Dir)
	for _, e := range entries {
		info, err := e.Info()
		path := filepath.Join(c.Dir, e.Name())
		switch {
		case err != nil:
		case strings.HasSuffix(e.Name(), partSuffix) && time.Since(info.ModTime()) > partLife:
			_ = os.Remove(path)
		case strings.HasSuffix(e.Name(), extension):
			files = append(files, file{path, info.Size(), info.ModTime()})
			total += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if total <= most {
			return
		}
		if os.Remove(f.path) == nil {
			total -= f.size
		}
	}
}

// encode returns the shortest encoding that keeps all logits exactly.
func encode(logits []float32) (kind uint32, data []byte) {
	kind = bfloat16s
	for _, v := range logits {
		if math.Float32bits(v)&0xffff != 0 {
			kind = float16s
			break
		}
	}
	if kind == float16s && !slices.ContainsFunc(logits, func(v float32) bool { _, ok := toFloat16(v); return !ok }) {
		data = make([]byte, 0, 2*len(logits))
		for _, v := range logits {
			h, _ := toFloat16(v)
			data = binary.LittleEndian.AppendUint16(data, h)
		}
		return kind, data
	}
	if kind == bfloat16s {
		data = make([]byte, 0, 2*len(logits))
		for _, v := range logits {
			data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(v)>>16))
		}
		return kind, data
	}
	data = make([]byte, 0, 4*len(logits))
	for _, v := range logits {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return float32s, data
}

func decode(kind uint32, data []byte, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		switch kind {
		case bfloat16s:
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
		case float16s:
			out[i] = fromFloat16(binary.LittleEndian.Uint16(data[2*i:]))
		default:
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
	}
	return out
}

// toFloat16 converts a normal float16 value, or a zero. ok is false for all others, which are rare among logits.
func toFloat16(v float32) (h uint16, ok bool) {
	b := math.Float32bits(v)
	sign, exponent := uint16(b>>16)&0x8000, int(b>>23&0xff)-127+15
	switch {
	case b<<1 == 0:
		return sign, true
	case exponent < 1 || exponent > 30 || b&0x1fff != 0:
		return 0, false
	}
	return sign | uint16(exponent)<<10 | uint16(b>>13&0x3ff), true
}

func fromFloat16(h uint16) float32 {
	if h<<1 == 0 {
		return math.Float32frombits(uint32(h) << 16)
	}
	return math.Float32frombits(uint32(h&0x8000)<<16 | (uint32(h>>10&0x1f)+127-15)<<23 | uint32(h&0x3ff)<<13)
}
