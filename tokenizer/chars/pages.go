package chars

// pages has a byte for each code point. Equal pages of 256 code points are stored once.
type pages struct {
	index [0x110000 >> 8]uint16
	list  [][256]uint8
}

// at returns the byte of a valid code point.
func (p *pages) at(c rune) uint8 { return p.list[p.index[c>>8]][c&0xff] }

// unpack fills the pages from runs of equal bytes. next decodes the first run of data, which takes n bytes.
func (p *pages) unpack(data []byte, next func(data []byte) (value uint8, length uint64, n int)) {
	seen := map[[256]uint8]uint16{}
	var page [256]uint8
	c := 0
	for len(data) > 0 {
		value, length, n := next(data)
		data = data[n:]
		for ; length > 0; length-- {
			page[c&0xff] = value
			if c++; c&0xff == 0 {
				at, ok := seen[page]
				if !ok {
					at = uint16(len(p.list))
					seen[page] = at
					p.list = append(p.list, page)
				}
				p.index[c>>8-1] = at
			}
		}
	}
}
