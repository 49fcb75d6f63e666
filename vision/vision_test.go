package vision

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// noise returns the picture of testdata/gen/vision/pictures.py.
func noise(width, height int) *Picture {
	p := newPicture(width, height)
	x := uint32(1)
	for i := range p.Pix {
		x = x*1664525 + 1013904223
		p.Pix[i] = uint8(x >> 24)
	}
	return p
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func readCases[T any](t *testing.T, name string) (cases []T) {
	t.Helper()
	if err := json.Unmarshal(readFile(t, name), &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Resized pictures equal Pillow's to the byte, for all sizes.
func TestResizeEqualsPillow(t *testing.T) {
	type test struct {
		From, To [2]int
		SHA256   string
	}
	for _, c := range readCases[test](t, "resize.json") {
		if got := noise(c.From[0], c.From[1]).Resize(c.To[1], c.To[0]); sum(got.Pix) != c.SHA256 {
			t.Errorf("%v to %v differs", c.From, c.To)
		}
	}
}

// Pixel values equal those of transformers' processor to the bit.
func TestPatchesEqualTransformers(t *testing.T) {
	type test struct {
		From         [2]int
		Min, Max     int
		Patch, Merge int
		Mean, Std    [3]float64
		Rows, Cols   int
		SHA256       string
	}
	for _, c := range readCases[test](t, "processor.json") {
		p := New(c.Patch, 2, c.Merge)
		p.MinPixels, p.MaxPixels, p.Mean, p.Std = c.Min, c.Max, c.Mean, c.Std
		got, err := p.Patches(noise(c.From[0], c.From[1]))
		if err != nil {
			t.Error(err)
			continue
		}
		if got.Rows != c.Rows || got.Cols != c.Cols || got.Width() != 3*2*c.Patch*c.Patch ||
			got.Tokens() != c.Rows*c.Cols/c.Merge/c.Merge {
			t.Errorf("%v: %d x %d patches of %d values, %d tokens; want %d x %d", c.From, got.Rows, got.Cols, got.Width(),
				got.Tokens(), c.Rows, c.Cols)
		}
		var raw []byte
		for _, v := range got.Pixels {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		if sum(raw) != c.SHA256 {
			t.Errorf("%v: pixel values differ", c.From)
		}
	}
}

// Files of every kind decode as with Pillow: upright, RGB, on white. The discrete cosine transform of Go's JPEG decoder
// rounds differently in some places.
func TestDecodeEqualsPillow(t *testing.T) {
	type test struct {
		Name          string
		Width, Height int
		SHA256        string
		Lossy         bool
	}
	for _, c := range readCases[test](t, "files.json") {
		got, err := Decode(readFile(t, "files/"+c.Name))
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if got.Width != c.Width || got.Height != c.Height {
			t.Errorf("%s has %d x %d pixels, want %d x %d", c.Name, got.Width, got.Height, c.Width, c.Height)
			continue
		}
		if sum(got.Pix) == c.SHA256 {
			continue
		}
		if !c.Lossy {
			t.Errorf("%s differs", c.Name)
			continue
		}
		worst, mean := difference(t, got, readFile(t, "files/"+c.Name+".expected.png"))
		if worst > 2 || mean > 0.05 {
			t.Errorf("%s: largest difference %d, mean %.3f", c.Name, worst, mean)
		}
	}
}

func difference(t *testing.T, got *Picture, expected []byte) (worst int, mean float64) {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(expected))
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for i, v := range flatten(m).Pix {
		d := int(v) - int(got.Pix[i])
		worst, total = max(worst, d, -d), total+max(d, -d)
	}
	return worst, float64(total) / float64(len(got.Pix))
}

func TestSize(t *testing.T) {
	p := New(16, 2, 2)
	p.MaxPixels = 16777216
	for _, test := range [][4]int{
		{300, 500, 288, 512}, {48, 2000, 64, 1984}, {40, 100, 192, 416}, {80, 80, 256, 256}, {10, 20, 192, 384},
		{4000, 6000, 3328, 4992},
	} {
		h, w, err := p.Size(test[0], test[1])
		if err != nil || h != test[2] || w != test[3] {
			t.Errorf("%d x %d becomes %d x %d, %v; want %d x %d", test[0], test[1], h, w, err, test[2], test[3])
		}
	}
	small := New(16, 2, 2)
	small.MinPixels, small.MaxPixels = 1, 64
	if h, w, err := small.Size(20, 4000); err != nil || h != 32 || w != 96 {
		t.Errorf("a side keeps one block: %d x %d, %v", h, w, err)
	}
	for _, test := range []struct {
		h, w int
		want string
	}{{1, 201, "more than 200 times"}, {2001, 10, "more than 200 times"}, {0, 5, "empty"}, {5, 0, "empty"}} {
		if _, _, err := p.Size(test.h, test.w); !errors.Is(err, ErrPicture) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%d x %d: %v", test.h, test.w, err)
		}
	}
	p.MinPixels, p.MaxPixels = 1<<30, 1<<31
	if _, _, err := p.Size(10, 10); !errors.Is(err, ErrPicture) || !strings.Contains(err.Error(), "would be resized") {
		t.Errorf("a huge area: %v", err)
	}
}
