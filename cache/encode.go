package cache

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// ErrEncoding reports bytes that are not a snapshot of this program.
var ErrEncoding = errors.New("not a snapshot")

// encoded is the header of an encoded snapshot.
type encoded struct {
	Form   form           `json:"form"`
	Window int            `json:"window,omitempty"`
	Rate   int            `json:"rate,omitempty"`
	Bits   int            `json:"bits,omitempty"`
	Exact  bool           `json:"exact,omitempty"`
	From   int            `json:"from"`
	To     int            `json:"to"`
	Arrays []encodedArray `json:"arrays"`
}

type encodedArray struct {
	DType mlx.DType `json:"dtype"`
	Shape []int     `json:"shape"`
	Bytes int64     `json:"bytes"`
}

// Bounds of the header and of the number of arrays.
const (
	maxEncodedHeader = 64 << 10
	maxEncodedArrays = 8
)

// Encode serializes the snapshot for a [Decoder] in the same version of the program: the memory layout of state may
// change between versions.
func (s *Snapshot) Encode() []byte {
	s.check("Encode")
	arrays := s.all()
	if len(s.runs) > 1 || len(s.runs) == 1 && s.runs[0].len() < s.runs[0].k.Dim(2) {
		arrays = copied(s.runs...).arrays()
		defer mlx.Free(arrays...)
	}
	k := s.kind
	e := encoded{Form: k.form, Window: k.window, Rate: k.rate, Bits: k.bits, Exact: k.exact, From: s.from, To: s.to}
	var data []byte
	for _, a := range arrays {
		b := a.ToBytes()
		e.Arrays = append(e.Arrays, encodedArray{a.DType(), a.Shape(), int64(len(b))})
		data = append(data, b...)
	}
	header, err := json.Marshal(e)
	if err != nil {
		panic(&mlx.Error{Message: "Encode: " + err.Error()}) // cannot fail: the header has only numbers
	}
	return append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(header))), header...), data...)
}

// Decoder decodes snapshots. It reads arrays through one buffer, which the next snapshot reuses.
type Decoder struct {
	Thread *mlx.Thread
	buffer []byte
}

// Decode parses the output of Encode, which is the next size bytes of r. It refuses a snapshot of another kind than
// kind.
func (d *Decoder) Decode(kind Kind, r io.Reader, size int64) (*Snapshot, error) {
	var e encoded
	size, err := ReadHeader(r, size, maxEncodedHeader, &e)
	if err != nil {
		return nil, err
	}
	isEmpty := kind.Whole() && e.From >= 0 && kind.entries(e.From) == kind.entries(e.To)
	stored := Kind{form: e.Form, window: e.Window, rate: e.Rate, bits: e.Bits, exact: e.Exact}
	if stored != kind || e.From < 0 || e.To <= e.From || isEmpty != (len(e.Arrays) == 0) ||
		len(e.Arrays) > maxEncodedArrays {
		return nil, fmt.Errorf("%w: of another kind of layer", ErrEncoding)
	}
	s := &Snapshot{kind: kind, from: e.From, to: e.To}
	if err := d.readArrays(s, e.Arrays, r, size); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// readArrays reads the arrays of a snapshot, which are the next size bytes of r. The caller closes the snapshot if it
// fails.
func (d *Decoder) readArrays(s *Snapshot, list []encodedArray, r io.Reader, size int64) error {
	for _, a := range list {
		if size -= a.Bytes; size < 0 || !a.valid() {
			return fmt.Errorf("%w: %d bytes of %v", ErrEncoding, a.Bytes, a.Shape)
		}
		if int64(cap(d.buffer)) < a.Bytes {
			d.buffer = make([]byte, a.Bytes)
		}
		data := d.buffer[:a.Bytes]
		if _, err := io.ReadFull(r, data); err != nil {
			return fmt.Errorf("%w: %w", ErrEncoding, err)
		}
		s.arrays = append(s.arrays, mlx.Keep(mlx.FromBytes(d.Thread, data, a.DType, a.Shape...)))
	}
	if size > 0 {
		return fmt.Errorf("%w: %d bytes follow", ErrEncoding, size)
	}
	if s.kind.Whole() && !s.toRun() {
		return fmt.Errorf("%w: %v for the positions [%d, %d)", ErrEncoding, list, s.from, s.to)
	}
	return nil
}

// ReadHeader reads the length of a JSON header and the header, which precede the rest of size bytes, and returns the
// size of the rest. most is the largest length.
func ReadHeader(r io.Reader, size, most int64, header any) (rest int64, err error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	n := int64(binary.LittleEndian.Uint32(length[:]))
	if rest = size - int64(len(length)) - n; rest < 0 || n > most {
		return 0, fmt.Errorf("%w: a header of %d bytes", ErrEncoding, n)
	}
	b := make([]byte, n)
	if _, err = io.ReadFull(r, b); err == nil {
		err = json.Unmarshal(b, header)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	return rest, nil
}

// valid reports whether an array's shape has as many bytes as it says.
func (a encodedArray) valid() bool {
	elements := int64(1)
	for _, d := range a.Shape {
		if d <= 0 || int64(d) > 1<<40/elements {
			return false
		}
		elements *= int64(d)
	}
	size := int64(a.DType.Size())
	return size > 0 && a.Bytes == elements*size
}

// toRun makes the arrays of a layer that keeps all positions its only run, and reports whether they fit.
func (s *Snapshot) toRun() bool {
	n := s.kind.entries(s.to) - s.kind.entries(s.from)
	if len(s.arrays) > 2 || slices.ContainsFunc(s.arrays, func(a *mlx.Array) bool {
		return len(a.Shape()) != 4 || a.Dim(2) != n
	}) {
		return false
	}
	if len(s.arrays) > 0 {
		s.runs, s.arrays = []slots{pairOf(s.arrays).all()}, nil
	}
	return true
}
