package mlxtest

import (
	"encoding/binary"
	"math"

	"github.com/ingotml/ingot/mlx"
	"github.com/x448/float16"
)

// Numbers decodes little-endian elements. float64 represents the goldens' 64-bit integers closely enough for a message,
// and NaN stays NaN.
func Numbers(b []byte, d mlx.DType) []float64 {
	out := make([]float64, 0, len(b)/d.Size())
	for ; len(b) > 0; b = b[d.Size():] {
		var v float64
		switch d {
		case mlx.Bool, mlx.Uint8:
			v = float64(b[0])
		case mlx.Int8:
			v = float64(int8(b[0]))
		case mlx.Uint16:
			v = float64(binary.LittleEndian.Uint16(b))
		case mlx.Int16:
			v = float64(int16(binary.LittleEndian.Uint16(b)))
		case mlx.Uint32:
			v = float64(binary.LittleEndian.Uint32(b))
		case mlx.Int32:
			v = float64(int32(binary.LittleEndian.Uint32(b)))
		case mlx.Uint64:
			v = float64(binary.LittleEndian.Uint64(b))
		case mlx.Int64:
			v = float64(int64(binary.LittleEndian.Uint64(b)))
		case mlx.Float32:
			v = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case mlx.Float64:
			v = math.Float64frombits(binary.LittleEndian.Uint64(b))
		case mlx.BFloat16:
			v = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
		case mlx.Float16:
			v = float64(float16.Frombits(binary.LittleEndian.Uint16(b)).Float32())
		}
		out = append(out, v)
	}
	return out
}
