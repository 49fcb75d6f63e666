// Package vision prepares pictures for a vision tower: it turns files into patches of normalized pixels. It does not
// need the engine.
//
// A [Processor] holds a model's settings. [Processor.Read] decodes a file, blends it with white, resizes it to whole
// blocks of patches, to the byte like Pillow's bicubic filter, and cuts it into patches. The reference is
// Qwen2VLImageProcessor of transformers 5.23 with Pillow. Files are untrusted: their size is read and checked before
// anything is decoded.
package vision

import (
	"errors"
	"fmt"
	"math"

	"github.com/ingotml/ingot/internal/limits"
)

var (
	// ErrPicture reports a picture that cannot be read or used.
	ErrPicture = errors.New("bad picture")
	// ErrConfig reports a preprocessor configuration that is not supported.
	ErrConfig = errors.New("bad preprocessor configuration")
)

// Processor holds the settings with which a model's pictures are prepared.
type Processor struct {
	Patch    int // side of a patch in pixels
	Temporal int // frames in a patch; a picture is repeated
	Merge    int // Merge x Merge patches become one vector
	// MinPixels and MaxPixels bound the area that a picture is resized to.
	MinPixels, MaxPixels int
	Mean, Std            [3]float64 // per channel, as a share of full intensity
	Scale                float64    // multiplies a byte before Mean is subtracted
}

// New returns a Processor with the defaults of published models.
func New(patch, temporal, merge int) Processor {
	half := [3]float64{0.5, 0.5, 0.5}
	return Processor{
		Patch: patch, Temporal: temporal, Merge: merge,
		MinPixels: 65536, MaxPixels: 2097152, Mean: half, Std: half, Scale: 1.0 / 255,
	}
}

// Size returns the size that a picture is resized to: multiples of Patch*Merge, whose product is within MinPixels and
// MaxPixels up to rounding.
func (p Processor) Size(height, width int) (h, w int, err error) {
	long, short := max(height, width), min(height, width)
	if short <= 0 {
		return 0, 0, fmt.Errorf("the picture is empty (%d x %d pixels): %w", width, height, ErrPicture)
	}
	if float64(long)/float64(short) > limits.PictureAspect {
		return 0, 0, fmt.Errorf("the picture has %d x %d pixels, one side more than %d times the other: %w",
			width, height, limits.PictureAspect, ErrPicture)
	}
	factor := float64(p.Patch * p.Merge)
	fh, fw := float64(height), float64(width)
	round := func(x float64) float64 { return math.RoundToEven(x/factor) * factor }
	sh, sw := round(fh), round(fw)
	switch low, high := float64(p.MinPixels), float64(p.MaxPixels); {
	case sh*sw > high:
		beta := math.Sqrt(fh * fw / high)
		down := func(x float64) float64 { return max(factor, math.Floor(x/beta/factor)*factor) }
		sh, sw = down(fh), down(fw)
	case sh*sw < low:
		beta := math.Sqrt(low / (fh * fw))
		up := func(x float64) float64 { return math.Ceil(x*beta/factor) * factor }
		sh, sw = up(fh), up(fw)
	}
	if sh*sw > limits.PicturePixels {
		return 0, 0, fmt.Errorf("the picture of %d x %d pixels would be resized to %.0f x %.0f, more than %d: %w",
			width, height, sw, sh, limits.PicturePixels, ErrPicture)
	}
	return int(sh), int(sw), nil
}

// Grid is the number of patches of a picture.
type Grid struct {
	Rows, Cols int // patches down and across, multiples of Merge
	Merge      int
}

// Tokens returns the number of vectors that the vision tower computes.
func (g Grid) Tokens() int { return g.Rows / g.Merge * (g.Cols / g.Merge) }

// Patches is a picture in the layout that a vision tower reads.
type Patches struct {
	Grid
	// Pixels is [Rows*Cols, 3*Temporal*Patch*Patch]. Blocks of Merge x Merge patches run from left to right and top to
	// bottom, and so do the patches in a block; a patch is [channel, frame, y, x].
	Pixels []float32
}

// Width returns the number of values of a patch.
func (p Patches) Width() int { return len(p.Pixels) / (p.Rows * p.Cols) }

// Measured is what the header of a picture file says about the picture.
type Measured struct {
	Grid
	Memory int64 // most bytes that Read uses for it, including the patches
	Held   int64 // bytes of the patches
}

// Measure reads the header of a picture file. It decodes no pixels, so the file may still be damaged.
func (p Processor) Measure(file []byte) (Measured, error) {
	kind, err := probe(file)
	if err != nil {
		return Measured{}, err
	}
	h, w, err := p.Size(kind.height, kind.width)
	if err != nil {
		return Measured{}, err
	}
	m := Measured{Grid: Grid{Rows: h / p.Patch, Cols: w / p.Patch, Merge: p.Merge}}
	pixels := int64(kind.width) * int64(kind.height)
	between := max(int64(h)*int64(kind.width), int64(kind.height)*int64(w)) // pixels after one axis was resized
	m.Held = 4 * rgbBytes * int64(p.Temporal) * int64(h) * int64(w)
	m.Memory = max(kind.decodeBytes, rgbBytes*(pixels+between), rgbBytes*(between+int64(h)*int64(w))+m.Held)
	return m, nil
}

// Read decodes a picture file and returns its patches.
func (p Processor) Read(file []byte) (Patches, error) {
	m, err := p.Measure(file) // fail before the work of decoding
	if err != nil {
		return Patches{}, err
	}
	picture, err := Decode(file)
	if err != nil {
		return Patches{}, err
	}
	collectGarbage(m.Memory)
	patches, err := p.Patches(picture)
	if err == nil && patches.Grid != m.Grid {
		err = fmt.Errorf("the picture does not have the size in its header: %w", ErrPicture)
	}
	return patches, err
}

// Patches resizes a picture and cuts it into patches.
func (p Processor) Patches(picture *Picture) (Patches, error) {
	h, w, err := p.Size(picture.Height, picture.Width)
	if err != nil {
		return Patches{}, err
	}
	return p.cut(picture.Resize(h, w)), nil
}

// cut cuts a picture whose sides are multiples of Patch*Merge.
func (p Processor) cut(picture *Picture) Patches {
	out := Patches{Grid: Grid{Rows: picture.Height / p.Patch, Cols: picture.Width / p.Patch, Merge: p.Merge}}
	values := p.values()
	frame := p.Patch * p.Patch
	out.Pixels = make([]float32, out.Rows*out.Cols*3*p.Temporal*frame)
	to := out.Pixels
	for row := 0; row < out.Rows; row += p.Merge {
		for col := 0; col < out.Cols; col += p.Merge {
			for i := range p.Merge * p.Merge {
				y, x := (row+i/p.Merge)*p.Patch, (col+i%p.Merge)*p.Patch
				for channel := range 3 {
					first := to[:frame]
					picture.cut(first, &values[channel], channel, y, x, p.Patch)
					for range p.Temporal - 1 {
						to = to[frame:]
						copy(to, first)
					}
					to = to[frame:]
				}
			}
		}
	}
	return out
}

// cut fills to with the values of a square of one channel.
func (p *Picture) cut(to []float32, values *[256]float32, channel, y, x, side int) {
	for dy := range side {
		line := p.Pix[((y+dy)*p.Width+x)*3+channel:]
		for dx := range side {
			to[dy*side+dx] = values[line[3*dx]]
		}
	}
}

// values returns the value of each byte, for each channel. It rounds in the same steps as the reference.
func (p Processor) values() (v [3][256]float32) {
	for c := range v {
		mean, std := float32(p.Mean[c]), float32(p.Std[c])
		for i := range v[c] {
			off := float32(float64(i)*p.Scale) - mean
			v[c][i] = off / std
		}
	}
	return v
}
