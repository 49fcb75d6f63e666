package vision

import (
	"bytes"
	"encoding/binary"
)

// orientation returns the EXIF orientation of a JPEG (APP1), PNG (eXIf) or WebP (EXIF) file: 1 to 8. It returns 1,
// upright, if there is none or it cannot be read.
func orientation(file []byte) int {
	switch {
	case bytes.HasPrefix(file, []byte("\xff\xd8")):
		return jpegOrientation(file)
	case bytes.HasPrefix(file, []byte("\x89PNG")):
		return chunkOrientation(file[8:], "eXIf", binary.BigEndian, 0, 4)
	case bytes.HasPrefix(file, []byte("RIFF")) && len(file) > 12:
		return chunkOrientation(file[12:], "EXIF", binary.LittleEndian, 4, 0)
	}
	return 1
}

// jpegOrientation reads the segments before the first scan.
func jpegOrientation(file []byte) int {
	for rest := file[2:]; len(rest) >= 4 && rest[0] == 0xff && rest[1] != 0xda; {
		if rest[1] == 0xff { // padding
			rest = rest[1:]
			continue
		}
		size := int(binary.BigEndian.Uint16(rest[2:]))
		if size < 2 || len(rest) < 2+size {
			break
		}
		if data := rest[4 : 2+size]; rest[1] == 0xe1 && bytes.HasPrefix(data, []byte("Exif\x00\x00")) {
			return tiffOrientation(data[6:])
		}
		rest = rest[2+size:]
	}
	return 1
}

// chunkOrientation reads chunks, which have a name and a length; in a WebP, the name comes first. tail is the number of
// bytes after a chunk's data.
func chunkOrientation(rest []byte, name string, order binary.ByteOrder, lengthAt, tail int) int {
	for len(rest) >= 8 {
		size := uint64(order.Uint32(rest[lengthAt:]))
		found := string(rest[4-lengthAt:8-lengthAt]) == name
		rest = rest[8:]
		if tail == 0 {
			size += size & 1 // WebP pads chunks to even lengths
		}
		if size+uint64(tail) > uint64(len(rest)) {
			break
		}
		if found {
			return tiffOrientation(bytes.TrimPrefix(rest[:size], []byte("Exif\x00\x00")))
		}
		rest = rest[size+uint64(tail):]
	}
	return 1
}

// tiffOrientation reads tag 0x0112 of the first directory (TIFF 6.0, section 2).
func tiffOrientation(b []byte) int {
	if len(b) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch string(b[:4]) {
	case "II*\x00":
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return 1
	}
	at := uint64(order.Uint32(b[4:]))
	if at+2 > uint64(len(b)) {
		return 1
	}
	count := int(order.Uint16(b[at:]))
	for entry := b[at+2:]; count > 0 && len(entry) >= 12; entry, count = entry[12:], count-1 {
		const short = 3
		if order.Uint16(entry) != 0x0112 || order.Uint16(entry[2:]) != short {
			continue
		}
		if v := int(order.Uint16(entry[8:])); v >= 1 && v <= 8 {
			return v
		}
		break
	}
	return 1
}

// upright returns the picture with its orientation applied.
func (p *Picture) upright(orientation int) *Picture {
	if orientation <= 1 {
		return p
	}
	width, height := p.Width, p.Height
	if orientation > 4 {
		width, height = height, width
	}
	out := newPicture(width, height)
	for y := range height {
		for x := range width {
			fx, fy := x, y // source of the pixel
			switch orientation {
			case 2:
				fx = p.Width - 1 - x
			case 3:
				fx, fy = p.Width-1-x, p.Height-1-y
			case 4:
				fy = p.Height - 1 - y
			case 5:
				fx, fy = y, x
			case 6:
				fx, fy = y, p.Height-1-x
			case 7:
				fx, fy = p.Width-1-y, p.Height-1-x
			case 8:
				fx, fy = p.Width-1-y, x
			}
			copy(out.Pix[3*(y*width+x):][:3], p.Pix[3*(fy*p.Width+fx):])
		}
	}
	return out
}
