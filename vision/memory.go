package vision

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"runtime"
)

// What decoding takes, in bytes for each pixel: the decoder's own form of the picture, what it needs beside that at the
// same time, and the RGB that is made of it. The figures follow the decoders' sources; TestDecodeMemory holds them.

// rgb is what a Picture takes.
const rgbBytes = 3

// large is from how many bytes on memory is collected at once, instead of when the heap has doubled.
const gcThreshold = 64 << 20

// drop collects what is not used any more, if it may be a lot.
func collectGarbage(bytes int64) {
	if bytes >= gcThreshold {
		runtime.GC()
	}
}

// depth is what the decoders' forms of pictures take.
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

// costPNG counts the passes of an interlaced picture, which together have as many pixels again. All of them are there
// until they are collected.
func costPNG(file []byte, c image.Config) float64 {
	const interlace = 28 // of the header: signature, length, IHDR, sides, depth, color, compression, filter
	n := decodedBytes(c)
	if len(file) > interlace && file[interlace] != 0 {
		return max(2*n, n+rgbBytes)
	}
	return n + rgbBytes
}

func costBMP(_ []byte, c image.Config) float64 { return decodedBytes(c) + rgbBytes }

// costGIF has the frame in a palette and in RGB, and the screen.
func costGIF([]byte, image.Config) float64 { return 1 + rgbBytes + rgbBytes }

// costWebP is for the lossless form, which has the most of it: pixels before and after transforms.
func costWebP([]byte, image.Config) float64 { return 3*4 + rgbBytes }

// costJPEG counts samples, four times more where they come in several scans, and copies of what is not YCbCr.
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

// jpegFrame reads the frame header: samples for each pixel, and whether they come in several scans. Without one that it
// understands it gives the most there can be.
func jpegFrame(file []byte) (samples float64, progressive bool) {
	const most = 4
	for rest := file[2:]; len(rest) >= 4 && rest[0] == 0xff && rest[1] != 0xda; {
		kind := rest[1]
		if kind == 0xff || kind == 0x01 || kind >= 0xd0 && kind <= 0xd9 { // padding, and markers without a length
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
		const head, each = 6, 3 // precision, sides and count; an id, factors and a table
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
