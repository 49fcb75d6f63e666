package sentencepiece

import (
	"encoding/binary"
	"fmt"
	"math"
)

// protoFields calls field for each field of a protocol buffers message (wire format:
// https://protobuf.dev/programming-guides/encoding/). It refuses groups, which are deprecated.
func protoFields(data []byte, field func(number int, v protoValue) error) error {
	for at := 0; at < len(data); {
		key, n := binary.Uvarint(data[at:])
		if n <= 0 || key>>3 == 0 || key>>3 > 1<<29 {
			return fmt.Errorf("offset %d: invalid field key", at)
		}
		at += n
		keySize := n
		v := protoValue{wire: int(key & 7)}
		switch v.wire {
		case 0:
			if v.number, n = binary.Uvarint(data[at:]); n <= 0 {
				return fmt.Errorf("offset %d: truncated number", at)
			}
			at += n
		case 1, 5:
			size := 8
			if v.wire == 5 {
				size = 4
			}
			if len(data)-at < size {
				return fmt.Errorf("offset %d: the message ends inside a field", at)
			}
			v.bytes = data[at : at+size]
			at += size
		case 2:
			size, n := binary.Uvarint(data[at:])
			if n <= 0 || size > uint64(len(data)-at-n) {
				return fmt.Errorf("offset %d: the message ends inside a field", at)
			}
			at += n
			v.bytes = data[at : at+int(size)]
			at += int(size)
		default:
			return fmt.Errorf("offset %d: wire type %d", at-keySize, v.wire)
		}
		if err := field(int(key>>3), v); err != nil {
			return err
		}
	}
	return nil
}

// protoValue is the value of a field: number for varints, otherwise bytes.
type protoValue struct {
	wire   int
	number uint64
	bytes  []byte
}

func (v protoValue) float() float32 {
	if v.wire != 5 {
		return 0
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(v.bytes))
}
