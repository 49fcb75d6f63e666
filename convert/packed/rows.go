package packed

import (
	"encoding/binary"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

var le = binary.LittleEndian

// PlainElements returns a reader of an unquantized tensor.
func PlainElements(t safetensors.Source) Elements { return plainElements{t} }

type plainElements struct{ t safetensors.Source }

func (p plainElements) Floats(dst []byte, begin, count int64) error {
	width := int64(p.t.DType.Bits() / 8)
	buf := make([]byte, count*width)
	if err := numbers.ReadAt(p.t, buf, begin*width); err != nil {
		return err
	}
	return quantize.Cast(dst, quantize.F32, buf, quantize.DType(p.t.DType))
}

func (p plainElements) Codes(quantize.Blocks, int64, int64) error {
	return wrong(p.t, "a plain tensor has no codes")
}
