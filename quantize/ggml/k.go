package ggml

// The K types: 256 elements in groups of 16 or 32, whose scales are themselves codes times a float16 scale. Codes of
// one bit position are stored for runs of 32 elements: element 32*j+i of a run of 128 has bits 2*j and 2*j+1, or nibble
// j, of byte i.

func decodeQ2_K(dst []float32, b []byte) {
	scales, codes := b[:16], b[16:80]
	d, min := half(b[80:]), half(b[82:])
	for i := range dst {
		s := scales[i/16]
		scale, offset := float32(d*float32(s&15)), float32(min*float32(s>>4))
		q := codes[i/128*32+i%32] >> (i / 32 % 4 * 2) & 3
		dst[i] = float32(scale*float32(q)) - offset
	}
}

func decodeQ3_K(dst []float32, b []byte) {
	high, codes, packed := b[:32], b[32:96], b[96:108]
	d := half(b[108:])
	var scales [16]float32
	for i := range scales {
		// The low four bits of the 16 scales are the nibbles of 8 bytes, the high two bits the pairs of 4 bytes.
		low := packed[i%8] >> (i / 8 * 4) & 15
		top := packed[8+i%4] >> (i / 4 * 2) & 3
		scales[i] = d * float32(int(low|top<<4)-32)
	}
	for i := range dst {
		q := int(codes[i/128*32+i%32] >> (i / 32 % 4 * 2) & 3)
		if high[i%32]>>(i/32)&1 == 0 {
			q -= 4
		}
		dst[i] = scales[i/16] * float32(q)
	}
}

// groupsK returns the scales and minimums of the 8 groups of 32 in Q4_K and Q5_K: 6 bits each in 12 bytes.
func groupsK(d, min float32, packed []byte) (scales, offsets [8]float32) {
	for i := range 4 {
		s, m, both := packed[i], packed[4+i], packed[8+i]
		scales[i], offsets[i] = d*float32(s&63), min*float32(m&63)
		scales[4+i] = d * float32(both&15|s>>6<<4)
		offsets[4+i] = min * float32(both>>4|m>>6<<4)
	}
	return scales, offsets
}

func decodeQ4_K(dst []float32, b []byte) {
	scales, offsets := groupsK(half(b), half(b[2:]), b[4:16])
	for g := range scales {
		codes := b[16+g/2*32:][:32]
		for i, q := range codes {
			dst[g*32+i] = float32(scales[g]*float32(q>>(g%2*4)&15)) - offsets[g]
		}
	}
}

func decodeQ5_K(dst []float32, b []byte) {
	scales, offsets := groupsK(half(b), half(b[2:]), b[4:16])
	high := b[16:48]
	for g := range scales {
		codes := b[48+g/2*32:][:32]
		for i, q := range codes {
			code := q>>(g%2*4)&15 | high[i]>>g&1<<4
			dst[g*32+i] = float32(scales[g]*float32(code)) - offsets[g]
		}
	}
}

func decodeQ6_K(dst []float32, b []byte) {
	low, high, scales := b[:128], b[128:192], b[192:208]
	d := half(b[208:])
	for i := range dst {
		half, j := i/128, i%128
		q := low[half*64+j%64] >> (j / 64 * 4) & 15
		q |= high[half*32+j%32] >> (j / 32 * 2) & 3 << 4
		dst[i] = float32(d*float32(int8(scales[i/16]))) * float32(int(q)-32)
	}
}
