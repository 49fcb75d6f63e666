package vision

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/image/bmp"
)

// Decoding a picture takes no more memory than its header says.
func TestDecodeMemory(t *testing.T) {
	const side = 1024
	square := image.Rect(0, 0, side, side)
	encoded := func(encode func(b *bytes.Buffer) error) []byte {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	ofPNG := func(m image.Image) []byte { return encoded(func(b *bytes.Buffer) error { return png.Encode(b, m) }) }
	translucent := image.NewNRGBA(square) // everywhere, else the encoder drops the alpha channel
	deep := image.NewNRGBA64(square)
	files := map[string][]byte{
		"gray PNG":    ofPNG(image.NewGray(square)),
		"palette PNG": ofPNG(image.NewPaletted(square, color.Palette{color.Black, color.White})),
		"PNG":         ofPNG(translucent),
		"deep PNG":    ofPNG(deep),
		"GIF": encoded(func(b *bytes.Buffer) error {
			return gif.Encode(b, image.NewPaletted(square, color.Palette{color.Black, color.White}), nil)
		}),
		"BMP":  encoded(func(b *bytes.Buffer) error { return bmp.Encode(b, translucent) }),
		"JPEG": encoded(func(b *bytes.Buffer) error { return jpeg.Encode(b, translucent, nil) }),
	}
	interlaced := bytes.Clone(files["deep PNG"]) // its data ends early, when most of the memory is in use
	interlaced[28] = 1
	files["interlaced PNG"] = fixPNG(interlaced)
	paths, err := filepath.Glob("testdata/files/*.jpg")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	progressive := 0
	for _, path := range paths { // likewise, with another size in the header
		file := readFile(t, filepath.Join("files", filepath.Base(path)))
		if resizeJPEG(file, side) == 0xc2 {
			progressive++
		}
		files[path] = file
	}
	if progressive == 0 {
		t.Error("no JPEG is progressive")
	}
	for name, file := range files {
		kind, err := probe(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = Decode(file)
		runtime.ReadMemStats(&after)
		took := int64(after.TotalAlloc - before.TotalAlloc)
		// The RGB picture, which may be allocated after other memory is free; tables and buffers.
		const slack = rgbBytes*side*side + 1<<20
		if took > kind.decodeBytes+slack || took < side*side {
			t.Errorf("%s: decoding took %d bytes, the header says %d", name, took, kind.decodeBytes)
		}
	}
}

// fixPNG corrects the checksum of a header.
func fixPNG(file []byte) []byte {
	binary.BigEndian.PutUint32(file[29:], crc32.ChecksumIEEE(file[12:29]))
	return file
}

// resizeJPEG writes another size into the frame header and returns the header's marker.
func resizeJPEG(file []byte, side uint16) (marker byte) {
	for at := 2; at+9 < len(file); at += 2 + int(binary.BigEndian.Uint16(file[at+2:])) {
		if m := file[at+1]; m >= 0xc0 && m <= 0xc2 {
			binary.BigEndian.PutUint16(file[at+5:], side)
			binary.BigEndian.PutUint16(file[at+7:], side)
			for i := range int(file[at+9]) {
				if m == 0xc2 {
					file[at+11+3*i] = 0x11 // most samples
				}
			}
			return m
		}
	}
	return 0
}
