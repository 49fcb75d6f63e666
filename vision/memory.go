package vision

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"runtime"
)

// The cost functions return the memory that decoding uses, in bytes per pixel: the decoder's result, the decoder's
// temporary memory, and the RGB picture made of the result. They follow the decoders' sources; TestDecodeMemory checks
// them.

// rgbBytes is the size of a Picture's pixel.
const rgbBytes = 3

// gcThreshold is the size of garbage that is collected at once, instead of when the heap has doubled.
const gcThreshold = 64 << 20

// collectGarbage runs the garbage collector if there may be many bytes of garbage.
func collectGarbage(bytes int64) {
	if bytes >= gcThreshold {
		runtime.GC()
	}
}

// decodedBytes returns the bytes per pixel of a decoder's result.
func decodedBytes(c image.Config) float64 {
	if _, ok := c.ColorModel.(color.Palette); ok {
		return 1
	}
	switch c.ColorModel {
	case color.GrayModel:
		return 1
	case color.Gray16Model:
		return 2
	case color.RGBA64Model, color.NRGBA64Model:
		return 8
	}
	return 4
}

// costPNG counts the passes of an interlaced picture, which together have as many pixels as the picture. All of them
// stay in memory until they are collected.
func costPNG(file []byte, c image.Config) float64 {
	// offset in the header, after signature, length, IHDR, width, height, depth, color, compression and filter
	const interlace = 28
	n := decodedBytes(c)
	if len(file) > interlace && file[interlace] != 0 {
		return max(2*n, n+rgbBytes)
	}
	return n + rgbBytes
}

func costBMP(_ []byte, c image.Config) float64 { return decodedBytes(c) + rgbBytes }

// costGIF counts the frame with its palette, the frame in RGB, and the screen.
func costGIF([]byte, image.Config) float64 { return 1 + rgbBytes + rgbBytes }

// costWebP assumes the lossless format, which uses the most memory: pixels before and after transforms.
func costWebP([]byte, image.Config) float64 { return 3*4 + rgbBytes }

// costJPEG counts samples, four times more if they come in several scans, and a converted copy unless the color model
// is gray or YCbCr.
func costJPEG(file []byte, c image.Config) float64 {
	samples, progressive := jpegFrame(file)
	n := samples
	if progressive {
		n += 4 * samples
	}
	copied := 0.0
	if c.ColorModel != color.GrayModel && c.ColorModel != color.YCbCrModel {
		copied = 4
	}
	return copied + max(n, samples+rgbBytes)
}

// jpegFrame reads the frame header: the samples per pixel, and whether they come in several scans. Without a valid
// header it returns the largest values.
func jpegFrame(file []byte) (samples float64, progressive bool) {
	const most = 4
	for rest := file[2:]; len(rest) >= 4 && rest[0] == 0xff && rest[1] != 0xda; {
		kind := rest[1]
		if kind == 0xff || kind == 0x01 || kind >= 0xd0 && kind <= 0xd9 { // padding, or a marker without a length
			rest = rest[1:]
			if kind != 0xff {
				rest = rest[1:]
			}
			continue
		}
		size := int(binary.BigEndian.Uint16(rest[2:]))
		if size < 2 || len(rest) < 2+size {
			break
		}
		data := rest[4 : 2+size]
		rest = rest[2+size:]
		if kind < 0xc0 || kind > 0xc2 {
			continue
		}
		// The head has precision, height, width and number of components; each component an id, factors and a table.
		const head, each = 6, 3
		if len(data) < head || data[5] == 0 || len(data) < head+each*int(data[5]) {
			break
		}
		var sum, h, v int
		for i := range int(data[5]) {
			factors := data[head+each*i+1]
			sum += int(factors>>4) * int(factors&15)
			h, v = max(h, int(factors>>4)), max(v, int(factors&15))
		}
		if h*v == 0 {
			break
		}
		return float64(sum) / float64(h*v), kind == 0xc2
	}
	return most, bytes.Contains(file, []byte("\xff\xc2"))
}
