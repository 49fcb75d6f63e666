package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/vision"
)

// ErrPictures reports that a model cannot process the pictures of a request.
var ErrPictures = errors.New("pictures cannot be used")

// Picture is one picture of a prompt.
type Picture struct {
	ID   int    // of its mark [img-ID] in a text
	Name string // used in errors; without one, they use its index
	Data []byte // a PNG, JPEG, GIF, WebP or BMP file
}

// name returns what errors call the picture with index i.
func (p Picture) name(i int) string {
	if p.Name != "" {
		return "picture " + p.Name
	}
	return fmt.Sprintf("picture %d", i+1)
}

// visionConfig says how a model processes pictures.
type visionConfig struct {
	arch.Pictures
	processor vision.Processor
	tower     models.Tower
}

// readVision returns nil for a model without a vision tower. setTower adds the tower when the model is built.
func (f files) readVision(config arch.Model) (*visionConfig, error) {
	m, ok := config.(interface{ Pictures() *arch.Pictures })
	if !ok || m.Pictures() == nil {
		return nil, nil
	}
	s := &visionConfig{Pictures: *m.Pictures()}
	s.processor = vision.New(s.Patch, s.Temporal, s.Merge)
	name, b, err := f.preprocessor()
	if err != nil || b == nil {
		return s, err
	}
	if s.processor, err = s.processor.Configured(b); err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// preprocessor returns the checkpoint's configuration for preparing pictures and the name of its file; nil if it has
// none. transformers 5 writes it as a part of processor_config.json, and reads that file first.
func (f files) preprocessor() (name string, config []byte, err error) {
	name = "processor_config.json"
	whole, err := f.read(manifest.KindFile, name)
	if err != nil {
		return name, nil, err
	}
	if whole != nil {
		var parts struct {
			Image json.RawMessage `json:"image_processor"`
		}
		if err := json.Unmarshal(whole, &parts); err != nil {
			return name, nil, fmt.Errorf("%s: %w: %w", name, vision.ErrConfig, err)
		}
		if parts.Image != nil {
			return name, parts.Image, nil
		}
	}
	name = "preprocessor_config.json"
	config, err = f.read(manifest.KindFile, name)
	return name, config, err
}

// setTower takes the vision tower of a model that was built.
func (s *visionConfig) setTower(m models.Model) {
	if s == nil {
		return
	}
	if seeing, ok := m.(models.Seeing); ok {
		s.tower = seeing.Tower()
	}
}

// needVision returns how the model processes pictures, or an error if it does not.
func (l *Local) needVision() (*visionConfig, error) {
	if l.vision != nil && l.vision.tower == nil {
		return nil, l.noTowerError()
	}
	return l.needImageToken()
}

// needImageToken returns how a prompt represents pictures, or an error if it cannot.
func (p *Processor) needImageToken() (*visionConfig, error) {
	switch {
	case p.vision == nil:
		return nil, p.noTowerError()
	case p.vision.Image == 0:
		return nil, fmt.Errorf("config.json has no image_token_id: %w", ErrPictures)
	}
	return p.vision, nil
}

func (p *Processor) noTowerError() error {
	return fmt.Errorf("%s without a vision tower: %w", p.config.Facts().ModelType, ErrPictures)
}

// checkNoVideo returns an error if a prompt contains a video token.
func (l *Local) checkNoVideo(prompt []int32) error {
	if l.vision == nil || l.vision.Video == 0 {
		return nil
	}
	if i := slices.Index(prompt, int32(l.vision.Video)); i >= 0 {
		return fmt.Errorf("token %d of the prompt stands for a video: videos are not supported: %w", i, ErrPictures)
	}
	return nil
}

// promptPictures holds what the pictures of a prompt add to its rows. It belongs to one request.
type promptPictures struct {
	expanded []int32          // the prompt, with one image token for each vector
	grid     [3][]int32       // time, height and width position of each token
	shift    int              // position of generated text, relative to its index in the sequence
	spans    []span           // in order
	distinct []*promptPicture // without duplicates
}

// span is the range of a picture's tokens in a prompt.
type span struct {
	start, end int // tokens
	picture    *promptPicture
}

// promptPicture is a distinct picture of a prompt, which may appear in it several times.
type promptPicture struct {
	vision.Measured
	picture Picture
	name    string     // used in errors
	hash    uint64     // of the file
	vectors *mlx.Array // [tokens, hidden], kept; nil before the picture is encoded
}

// placePictures assigns pictures to the image tokens of a prompt, in order. A picture has one image token, which is
// expanded to one for each of its vectors, or a run of that many. It returns nil without pictures. It reads only the
// headers of the pictures; they are decoded later, one at a time.
func (l *Local) placePictures(
	ctx context.Context, prompt []int32, pictures []Picture, limit int,
) (*promptPictures, error) {
	if len(pictures) == 0 {
		return nil, nil
	}
	s, err := l.needVision()
	if err != nil {
		return nil, err
	}
	image := int32(s.Image)
	runs := runsOf(prompt, image)
	if len(runs) != len(pictures) {
		return nil, fmt.Errorf("the prompt has places for %d pictures, %d were given: %w", len(runs), len(pictures),
			ErrPictures)
	}
	p := &promptPictures{}
	known := map[[sha256.Size]byte]*promptPicture{}
	done := 0
	for i, run := range runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		key := sha256.Sum256(pictures[i].Data)
		of := known[key]
		if of == nil {
			size, err := s.measure(pictures[i], i)
			if err != nil {
				return nil, err
			}
			of = &promptPicture{
				Measured: size, picture: pictures[i], name: pictures[i].name(i), hash: binary.LittleEndian.Uint64(key[:]),
			}
			known[key], p.distinct = of, append(p.distinct, of)
		}
		n := of.Tokens()
		if length := run[1] - run[0]; length != 1 && length != n {
			return nil, fmt.Errorf("%s makes %d tokens, the prompt has %d for it at token %d: %w", pictures[i].name(i), n,
				length, run[0], ErrPictures)
		}
		p.expanded = append(p.expanded, prompt[done:run[0]]...)
		p.spans = append(p.spans, span{len(p.expanded), len(p.expanded) + n, of})
		p.expanded = append(p.expanded, slices.Repeat([]int32{image}, n)...)
		done = run[1]
		if len(p.expanded)+len(prompt)-done >= limit {
			return nil, fmt.Errorf("the prompt has %d tokens with %s, the model's context %d: %w",
				len(p.expanded)+len(prompt)-done, pictures[i].name(i), limit, ErrPrompt)
		}
	}
	p.expanded = append(p.expanded, prompt[done:]...)
	p.assignPositions()
	return p, nil
}

// runsOf returns the start and end of each run of a token.
func runsOf(tokens []int32, token int32) (runs [][2]int) {
	for i := 0; i < len(tokens); i++ {
		if tokens[i] != token {
			continue
		}
		start := i
		for i < len(tokens) && tokens[i] == token {
			i++
		}
		runs = append(runs, [2]int{start, i})
	}
	return runs
}

// assignPositions computes the three positions of each token. Text advances all three together. All tokens of a picture
// have the same time position; their rows and columns count from there. Text after a picture continues beyond its
// longer side.
func (p *promptPictures) assignPositions() {
	at, done := int32(0), 0
	text := func(end int) {
		for ; done < end; done++ {
			for axis := range p.grid {
				p.grid[axis] = append(p.grid[axis], at)
			}
			at++
		}
	}
	for _, s := range p.spans {
		text(s.start)
		rows, cols := int32(s.picture.Rows/s.picture.Merge), int32(s.picture.Cols/s.picture.Merge)
		for i := range rows * cols {
			for axis, offset := range [3]int32{0, i / cols, i % cols} {
				p.grid[axis] = append(p.grid[axis], at+offset)
			}
		}
		at += max(rows, cols)
		done = s.end
	}
	text(len(p.expanded))
	p.shift = int(at) - len(p.expanded)
}

// encodePicture decodes a picture and runs it through the vision tower.
func (l *Local) encodePicture(ctx context.Context, s *promptPicture) error {
	p := l.decode(ctx, s)
	defer p.free()
	if p.err != nil {
		return p.err
	}
	return l.do(ctx, func() error { return l.runTower(ctx, s, p.patches) })
}

// runTower runs the patches of a picture through the vision tower. It runs on the engine's thread.
func (l *Local) runTower(ctx context.Context, s *promptPicture, p vision.Patches) error {
	vectors, err := l.vision.tower.Encode(ctx, mlx.FromSlice(l.thread, p.Pixels, p.Rows*p.Cols, p.Width()), p.Rows, p.Cols)
	if err != nil {
		return err
	}
	mlx.Eval(vectors)
	s.vectors = mlx.Keep(vectors)
	return nil
}

// probeTower runs a gray square through the vision tower.
func (l *Local) probeTower(ctx context.Context) error {
	if l.vision == nil || l.vision.tower == nil {
		return nil
	}
	side := l.vision.Patch * l.vision.Merge
	gray := &vision.Picture{Width: side, Height: side, Pix: slices.Repeat([]uint8{100}, 3*side*side)}
	patches, err := l.vision.processor.Patches(gray)
	if err != nil {
		return err
	}
	picture := &promptPictures{distinct: []*promptPicture{{}}}
	defer func() {
		_ = l.thread.Do(context.Background(), func() error { picture.free(); return nil })
	}()
	if err := l.do(ctx, func() error { return l.runTower(ctx, picture.distinct[0], patches) }); err != nil {
		return err
	}
	return l.do(ctx, func() error {
		for i, v := range picture.distinct[0].vectors.Float32s() {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fmt.Errorf("element %d of the vectors of a picture is %v: %w", i, v, ErrImage)
			}
		}
		return nil
	})
}

// part adds pictures and positions to a part of the text that begins at token start.
func (p *promptPictures) part(part nn.Part, start int) nn.Part {
	if p == nil {
		return part
	}
	end := start + len(part.Tokens)
	if start >= len(p.expanded) { // generated text
		part.Shift = p.shift
		return part
	}
	for axis := range p.grid {
		part.Grid[axis] = p.grid[axis][start:end]
	}
	for _, s := range p.spans {
		from, to := max(s.start, start), min(s.end, end)
		if from < to {
			x := mlx.Slice(s.picture.vectors, mlx.Range(from-s.start, to-s.start), mlx.All())
			part.Vectors = append(part.Vectors, nn.Vectors{Row: from - start, X: x})
		}
	}
	return part
}

// generatedShift returns the position of generated text, relative to its index in the sequence.
func (p *promptPictures) generatedShift() int {
	if p == nil {
		return 0
	}
	return p.shift
}

// free frees the vectors. It runs on the engine's thread.
func (p *promptPictures) free() {
	if p == nil {
		return
	}
	for _, s := range p.distinct {
		mlx.Free(s.vectors)
		s.vectors = nil
	}
}
