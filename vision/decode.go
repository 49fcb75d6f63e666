package vision

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/webp"

	"github.com/ingotml/ingot/internal/limits"
)

// format is a file format.
type format struct {
	name   string
	magic  string // ? matches any byte
	config func(file []byte) (image.Config, error)
	decode func(file []byte) (*Picture, error)
	cost   func(file []byte, c image.Config) float64 // most bytes that decode uses per pixel
}

var formats = []format{
	{"PNG", "\x89PNG\r\n\x1a\n", readConfig(png.DecodeConfig), decodePNG, costPNG},
	{"JPEG", "\xff\xd8\xff", readConfig(jpeg.DecodeConfig), decodeJPEG, costJPEG},
	{"GIF", "GIF8?a", readConfig(gif.DecodeConfig), decodeGIF, costGIF},
	{"WebP", "RIFF????WEBP", readConfig(webp.DecodeConfig), decodeWebP, costWebP},
	{"BMP", "BM", readConfig(bmp.DecodeConfig), decodeBMP, costBMP},
}

// fileInfo describes a file before it is decoded. width and height are those of the upright picture.
type fileInfo struct {
	format
	width, height int
	orientation   int   // EXIF orientation: 1 is upright
	decodeBytes   int64 // most memory that decoding uses
}

// probe returns a file's format and size. It rejects pictures with too many pixels.
func probe(file []byte) (fileInfo, error) {
	if len(file) == 0 {
		return fileInfo{}, fmt.Errorf("the picture is empty: %w", ErrPicture)
	}
	for _, f := range formats {
		if !matches(file, f.magic) {
			continue
		}
		c, err := f.config(file)
		if err != nil {
			return fileInfo{}, fmt.Errorf("%s: %w: %w", f.name, ErrPicture, err)
		}
		if c.Width <= 0 || c.Height <= 0 {
			return fileInfo{}, fmt.Errorf("%s: the picture is empty (%d x %d pixels): %w", f.name, c.Width, c.Height, ErrPicture)
		}
		if c.Width > limits.PicturePixels/c.Height {
			return fileInfo{}, fmt.Errorf("%s: the picture has %d x %d pixels, more than %d: make it smaller: %w", f.name,
				c.Width, c.Height, limits.PicturePixels, ErrPicture)
		}
		p := fileInfo{format: f, width: c.Width, height: c.Height, orientation: orientation(file)}
		p.decodeBytes = int64(f.cost(file, c) * float64(c.Width*c.Height))
		if p.orientation > 1 {
			p.decodeBytes = max(p.decodeBytes, 2*rgbBytes*int64(c.Width)*int64(c.Height))
		}
		if p.orientation > 4 {
			p.width, p.height = p.height, p.width
		}
		return p, nil
	}
	return fileInfo{}, fmt.Errorf("neither PNG, JPEG, GIF, WebP nor BMP: %w", ErrPicture)
}

// matches reports whether a file begins with a format's magic number.
func matches(file []byte, magic string) bool {
	if len(file) < len(magic) {
		return false
	}
	for i, c := range []byte(magic) {
		if c != '?' && file[i] != c {
			return false
		}
	}
	return true
}

// Decode decodes a PNG, JPEG, GIF (its first frame), WebP or BMP file. It applies the orientation, and blends
// transparent pixels with white.
func Decode(file []byte) (*Picture, error) {
	kind, err := probe(file)
	if err != nil {
		return nil, err
	}
	p, err := kind.decode(file)
	if err != nil {
		if !errors.Is(err, ErrPicture) {
			err = fmt.Errorf("%w: %w", ErrPicture, err)
		}
		return nil, fmt.Errorf("%s: %w", kind.name, err)
	}
	if kind.orientation > 1 {
		collectGarbage(kind.decodeBytes)
	}
	return p.upright(kind.orientation), nil
}

func decodePNG(file []byte) (*Picture, error) {
	m, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	collectGarbage(int64(m.Bounds().Dx()) * int64(m.Bounds().Dy())) // the passes of an interlaced picture
	return flatten(m), nil
}

func decodeBMP(file []byte) (*Picture, error) {
	m, err := bmp.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	return flatten(m), nil
}

// decodeGIF places the first frame on the logical screen; the rest of the screen is transparent, thus white.
func decodeGIF(file []byte) (*Picture, error) {
	screen, err := gif.DecodeConfig(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	m, err := gif.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	frame, out := flatten(m), newPicture(screen.Width, screen.Height)
	for i := range out.Pix {
		out.Pix[i] = 255
	}
	at := m.Bounds().Intersect(image.Rect(0, 0, screen.Width, screen.Height))
	for y := at.Min.Y; y < at.Max.Y; y++ {
		from := frame.Pix[3*((y-m.Bounds().Min.Y)*frame.Width+at.Min.X-m.Bounds().Min.X):]
		copy(out.Pix[3*(y*out.Width+at.Min.X):][:3*at.Dx()], from)
	}
	return out, nil
}

// readConfig adapts a DecodeConfig function of an image package.
func readConfig(decode func(io.Reader) (image.Config, error)) func([]byte) (image.Config, error) {
	return func(file []byte) (image.Config, error) { return decode(bytes.NewReader(file)) }
}

// flatten converts a picture to RGB, blended with white where it is transparent.
func flatten(m image.Image) *Picture {
	b := m.Bounds()
	p := newPicture(b.Dx(), b.Dy())
	pixel := reader(m)
	for y := range p.Height {
		line := p.Pix[3*y*p.Width:][:3*p.Width]
		for x := range p.Width {
			c := pixel(b.Min.X+x, b.Min.Y+y)
			line[3*x], line[3*x+1], line[3*x+2] = onWhite(c.R, c.A), onWhite(c.G, c.A), onWhite(c.B, c.A)
		}
	}
	return p
}

// reader returns a function that reads pixels as 8-bit colors without premultiplied alpha. Of 16-bit values it takes
// the upper half.
func reader(m image.Image) func(x, y int) color.NRGBA {
	switch m := m.(type) {
	case *image.NRGBA:
		return m.NRGBAAt
	case *image.RGBA: // decoders use it only for opaque pictures
		return func(x, y int) color.NRGBA { return color.NRGBA(m.RGBAAt(x, y)) }
	case *image.Gray:
		return func(x, y int) color.NRGBA {
			v := m.GrayAt(x, y).Y
			return color.NRGBA{v, v, v, 255}
		}
	case *image.Paletted:
		var colors [256]color.NRGBA // indices beyond the palette are transparent
		for i, c := range m.Palette {
			colors[i] = color.NRGBAModel.Convert(c).(color.NRGBA)
		}
		return func(x, y int) color.NRGBA { return colors[m.ColorIndexAt(x, y)] }
	case *image.NRGBA64:
		return func(x, y int) color.NRGBA {
			c := m.NRGBA64At(x, y)
			return color.NRGBA{uint8(c.R >> 8), uint8(c.G >> 8), uint8(c.B >> 8), uint8(c.A >> 8)}
		}
	}
	return func(x, y int) color.NRGBA { return color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA) }
}

// onWhite blends a channel with white, rounded to nearest.
func onWhite(v, a uint8) uint8 {
	sum := uint32(v)*uint32(a) + 255*(255-uint32(a))
	return uint8((sum*2 + 255) / 510)
}
