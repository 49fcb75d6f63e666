package ggml

// The types of 1 and 2 bits with one float16 scale before the codes, the first code in the lowest bits of its byte. A
// bit is -1 or 1 times the scale, a code of 2 bits is -1, 0, 1 or 2 times it.

func decodeQ1_0(dst []float32, b []byte) {
	d := half(b)
	for i := range dst {
		dst[i] = d * float32(int(b[2+i/8]>>(i%8)&1)*2-1)
	}
}

// decodeQ2_0 decodes a block of any size.
func decodeQ2_0(dst []float32, b []byte) {
	d := half(b)
	for i := range dst {
		dst[i] = d * float32(int(b[2+i/4]>>(i%4*2)&3)-1)
	}
}

// recodeQ1_0 makes codes 0 and 2 of 2 bits, because there is no format of 1 bit. Codes 0 and 1 would need a scale twice
// as large, which float16 need not hold.
func recodeQ1_0(w *writer, b []byte) {
	d := half(b)
	w.affine(d, -d, 2)
	dst := w.codes()
	for i := range 128 {
		dst[i/4] |= b[2+i/8] >> (i % 8) & 1 << (i%4*2 + 1)
	}
}

// recodeQ2_0 keeps the codes, which have the order of package quantize.
func recodeQ2_0(w *writer, b []byte) {
	d := half(b)
	w.affine(d, -d, 3)
	copy(w.codes(), b[2:])
}
