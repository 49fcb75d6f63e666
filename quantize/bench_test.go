package quantize

import (
	"fmt"
	"testing"
)

// benchData is a megabyte or so of weights: numbers of one size, as kind 0 of the generator.
func benchData(d DType) []byte {
	var src []byte
	for r := range 2048 {
		src = append(src, randomRow(r*kinds, d)...)
	}
	return src
}

// Rates are of bytes of the source, also for decoding.
func BenchmarkEncode(b *testing.B) {
	for _, from := range targets {
		src := benchData(from)
		for _, q := range append(quantized(), ToBF16, ToF16, ToF32) {
			dst := buffers(q, src, from)
			b.Run(fmt.Sprintf("%s/%s", q, from), func(b *testing.B) {
				b.SetBytes(int64(len(src)))
				for b.Loop() {
					if err := q.Encode(dst, src, from); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, to := range targets {
		src := benchData(to)
		for _, q := range quantized() {
			coded := buffers(q, src, to)
			if err := q.Encode(coded, src, to); err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/%s", q, to), func(b *testing.B) {
				b.SetBytes(int64(len(src)))
				for b.Loop() {
					if err := q.Decode(src, to, coded, to); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
