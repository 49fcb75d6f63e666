package vision

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"

	"golang.org/x/image/webp"

	"github.com/ingotml/ingot/internal/limits"
)

// decodeJPEG decodes a JPEG and converts it to RGB as libjpeg does, which Pillow uses: it interpolates subsampled
// chroma, where Go's own conversion repeats it.
func decodeJPEG(file []byte) (*Picture, error) {
	if n := bytes.Count(file, []byte("\xff\xda")); n > limits.PictureScans {
		return nil, fmt.Errorf("%d scans, more than %d: %w", n, limits.PictureScans, ErrPicture)
	}
	m, err := jpeg.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	collectGarbage(int64(m.Bounds().Dx()) * int64(m.Bounds().Dy()))
	switch m := m.(type) {
	case *image.YCbCr:
		return fromYCbCr(m, fancyUpsample, jfifToRGB), nil
	case *image.CMYK:
		return fromCMYK(m), nil
	}
	return flatten(m), nil
}

// decodeWebP decodes a WebP, and converts a lossy one to RGB as libwebp does. Lossless ones are RGB already.
func decodeWebP(file []byte) (*Picture, error) {
	m, err := webp.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	switch m := m.(type) {
	case *image.YCbCr:
		return fromYCbCr(m, webpUpsample, bt601ToRGB), nil
	case *image.NYCbCrA:
		p := fromYCbCr(&m.YCbCr, webpUpsample, bt601ToRGB)
		for y := range p.Height {
			for x := range p.Width {
				at, a := 3*(y*p.Width+x), m.A[y*m.AStride+x]
				for c := range 3 {
					p.Pix[at+c] = onWhite(p.Pix[at+c], a)
				}
			}
		}
		return p, nil
	}
	return flatten(m), nil
}

// plane is one channel of a picture.
type plane struct {
	pix                   []uint8
	stride, width, height int
}

func (p plane) row(y int) []uint8 { return p.pix[min(max(y, 0), p.height-1)*p.stride:][:p.width] }

// upsampler computes a row of chroma for row y of the picture.
type upsampler func(to []uint8, chroma plane, y int, ratio image.YCbCrSubsampleRatio)

// converter converts a pixel from YCbCr to RGB.
type converter func(to []uint8, y, cb, cr uint8)

func fromYCbCr(m *image.YCbCr, up upsampler, convert converter) *Picture {
	b := m.Bounds()
	p := newPicture(b.Dx(), b.Dy())
	sx, sy := subsampling(m.SubsampleRatio)
	width, height := (p.Width+sx-1)/sx, (p.Height+sy-1)/sy
	offset := m.COffset(b.Min.X, b.Min.Y)
	cb := plane{m.Cb[offset:], m.CStride, width, height}
	cr := plane{m.Cr[offset:], m.CStride, width, height}
	blue, red := make([]uint8, sx*width), make([]uint8, sx*width)
	for y := range p.Height {
		up(blue, cb, y, m.SubsampleRatio)
		up(red, cr, y, m.SubsampleRatio)
		luma := m.Y[m.YOffset(b.Min.X, b.Min.Y+y):]
		line := p.Pix[3*y*p.Width:][:3*p.Width]
		for x := range p.Width {
			convert(line[3*x:3*x+3], luma[x], blue[x], red[x])
		}
	}
	return p
}

// subsampling returns how many luma pixels share one chroma sample, horizontally and vertically.
func subsampling(r image.YCbCrSubsampleRatio) (x, y int) {
	switch r {
	case image.YCbCrSubsampleRatio422:
		return 2, 1
	case image.YCbCrSubsampleRatio420:
		return 2, 2
	case image.YCbCrSubsampleRatio440:
		return 1, 2
	case image.YCbCrSubsampleRatio411:
		return 4, 1
	case image.YCbCrSubsampleRatio410:
		return 4, 2
	}
	return 1, 1
}

// fancyUpsample interpolates subsampled chroma with a triangle filter, like the "fancy upsampling" of libjpeg-turbo: it
// weights the nearer sample 3 and the other one 1, with alternating rounding. For other ratios and for pictures with
// very few columns, it repeats the samples.
func fancyUpsample(to []uint8, c plane, y int, ratio image.YCbCrSubsampleRatio) {
	near, far := c.row(y/2), c.row(y/2-1+y%2*2)
	switch {
	case ratio == image.YCbCrSubsampleRatio422 && c.width > 2:
		near = c.row(y)
		upsample2(to, len(near), func(i int) int { return int(near[i]) }, 2, 1, 2)
	case ratio == image.YCbCrSubsampleRatio420 && c.width > 2:
		upsample2(to, len(near), func(i int) int { return 3*int(near[i]) + int(far[i]) }, 4, 8, 7)
	case ratio == image.YCbCrSubsampleRatio440:
		for i := range near {
			to[i] = uint8((3*int(near[i]) + int(far[i]) + 1 + y%2) >> 2)
		}
	default:
		sx, sy := subsampling(ratio)
		near = c.row(y / sy)
		for i := range to {
			to[i] = near[i/sx]
		}
	}
}

// upsample2 doubles n samples. It adds left or right to the weighted sum of neighbors before the shift, for rounding.
func upsample2(to []uint8, n int, sample func(i int) int, shift, left, right int) {
	for i := range n {
		v := sample(i)
		before, after := v, v
		if i > 0 {
			before = sample(i - 1)
		}
		if i < n-1 {
			after = sample(i + 1)
		}
		to[2*i] = uint8((3*v + before + left) >> shift)
		to[2*i+1] = uint8((3*v + after + right) >> shift)
	}
}

// jfifToRGB converts like libjpeg, with 16 fraction bits.
func jfifToRGB(to []uint8, y, cb, cr uint8) {
	const one, round = 1 << 16, 1 << 15
	l, b, r := int32(y), int32(cb)-128, int32(cr)-128
	to[0] = saturate(l + (91881*r+round)>>16)
	to[1] = saturate(l + (-22554*b-46802*r+round)>>16)
	to[2] = saturate(l + (116130*b+round)>>16)
}

func saturate(v int32) uint8 { return uint8(min(max(v, 0), 255)) }

// webpUpsample interpolates chroma of half width and height like libwebp: it weights the four nearest samples 9, 3, 3
// and 1.
func webpUpsample(to []uint8, c plane, y int, _ image.YCbCrSubsampleRatio) {
	near, far := c.row(y/2), c.row(y/2-1+y%2*2)
	for x := range to {
		a, b := x/2, min(max(x/2-1+x%2*2, 0), c.width-1)
		to[x] = mix(int(near[a]), int(near[b]), int(far[a]), int(far[b]))
	}
}

// mix returns (9a + 3b + 3c + d) / 16 in the same steps as libwebp, each of which rounds down.
func mix(a, b, c, d int) uint8 {
	sum := a + b + c + d + 8
	return uint8(((sum+2*(b+c))>>3 + a) >> 1)
}

// bt601ToRGB converts video levels (16 to 235) like libwebp.
func bt601ToRGB(to []uint8, y, cb, cr uint8) {
	high := func(v uint8, factor int32) int32 { return int32(v) * factor >> 8 }
	l := high(y, 19077)
	to[0] = saturate((l + high(cr, 26149) - 14234) >> 6)
	to[1] = saturate((l - high(cb, 6419) - high(cr, 13320) + 8708) >> 6)
	to[2] = saturate((l + high(cb, 33050) - 17685) >> 6)
}

// fromCMYK multiplies each ink with black.
func fromCMYK(m *image.CMYK) *Picture {
	b := m.Bounds()
	p := newPicture(b.Dx(), b.Dy())
	for y := range p.Height {
		for x := range p.Width {
			c := m.CMYKAt(b.Min.X+x, b.Min.Y+y)
			to := p.Pix[3*(y*p.Width+x):]
			for i, ink := range [3]uint8{c.C, c.M, c.Y} {
				product := (255-uint32(ink))*(255-uint32(c.K)) + 128
				to[i] = uint8((product>>8 + product) >> 8)
			}
		}
	}
	return p
}
