package quantize

import (
	"math"
	"testing"
)

// The loaders in assembly do what those in Go do, on all that goldens are made of and on infinities and NaN.
func TestLoadAVX2(t *testing.T) {
	if !hasAVX2 {
		t.Skip("this processor has no AVX2")
	}
	golden := goldens(t, "edges.safetensors")
	for _, d := range targets {
		data, _ := golden(string(d))
		for r := range 8 * kinds {
			data = append(data, randomRow(r, d)...)
		}
		for i := range uint64(8 * 128) {
			data = append(data, le.AppendUint64(nil, mix(i)|0x7f80_0000_7c00_7f80)[:d.Size()]...)
		}
		for _, n := range []int{16, 32, 64, 128} {
			for rest := data; len(rest) >= n*d.Size(); rest = rest[n*d.Size():] {
				src := rest[:n*d.Size()]
				var want, got block
				lo, hi := d.loadGo(&want, src)
				lo2, hi2 := d.loadAVX2(&got, src)
				if !finite(lo, hi) {
					if finite(lo2, hi2) {
						t.Fatalf("%s %x: taken for finite", d, src)
					}
					continue
				}
				if want != got || math.Float32frombits(lo) != math.Float32frombits(lo2) ||
					math.Float32frombits(hi) != math.Float32frombits(hi2) {
					t.Fatalf("%s %x: got %x to %x in %x, want %x to %x in %x", d, src, lo2, hi2, got[:n], lo, hi, want[:n])
				}
			}
		}
	}
}
