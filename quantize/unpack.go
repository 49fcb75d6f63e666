package quantize

// unpack reads a group's codes; their number is a multiple of 8.
func unpack(codes []uint8, src []byte, bits uint) {
	mask := uint64(1)<<bits - 1
	for i := 0; i+8 <= len(codes); i += 8 {
		var v uint64
		switch bits {
		case 2:
			v = uint64(le.Uint16(src))
		case 3:
			v = uint64(le.Uint16(src)) | uint64(src[2])<<16
		case 4:
			v = uint64(le.Uint32(src))
		case 5:
			v = uint64(le.Uint32(src)) | uint64(src[4])<<32
		case 6:
			v = uint64(le.Uint32(src)) | uint64(le.Uint16(src[4:]))<<32
		case 8:
			v = le.Uint64(src)
		}
		c := (*[8]uint8)(codes[i:])
		c[0], c[1], c[2], c[3] = uint8(v&mask), uint8(v>>bits&mask), uint8(v>>(2*bits)&mask), uint8(v>>(3*bits)&mask)
		v >>= 4 * bits
		c[4], c[5], c[6], c[7] = uint8(v&mask), uint8(v>>bits&mask), uint8(v>>(2*bits)&mask), uint8(v>>(3*bits)&mask)
		src = src[bits:]
	}
}

// lookup maps codes to elements. The table holds 64 elements of dst's type, whose size is 2 or 4 bytes.
func lookup(dst []byte, codes []uint8, table *[256]byte, size int) {
	if size == 2 {
		dst = dst[:2*len(codes)]
		for i, c := range codes {
			le.PutUint16(dst[2*i:], le.Uint16(table[2*(c&63):]))
		}
		return
	}
	dst = dst[:4*len(codes)]
	for i, c := range codes {
		le.PutUint32(dst[4*i:], le.Uint32(table[4*int(c&63):]))
	}
}
