package pictures

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/vision"
	"golang.org/x/sync/semaphore"
)

// Encoder turns the pictures of a model's prompts into vectors.
type Encoder struct {
	processor *processor.Processor
	thread    *mlx.Thread
	tower     models.Tower        // nil if the model has none
	Memory    *semaphore.Weighted // of pictures between their files and the tower; those that do not fit wait in order
}

// New returns the encoder of a model on the given thread.
func New(p *processor.Processor, t *mlx.Thread, m models.Model) *Encoder {
	e := &Encoder{processor: p, thread: t, Memory: semaphore.NewWeighted(limits.PictureMemory)}
	if seeing, ok := m.(models.Seeing); ok && p.Vision != nil {
		e.tower = seeing.Tower()
	}
	p.NoTower = p.Vision != nil && e.tower == nil
	return e
}

// need returns how the model processes pictures, or an error if it does not.
func (e *Encoder) need() (*processor.Vision, error) {
	if err := e.processor.CheckPictures(); err != nil {
		return nil, err
	}
	return e.processor.Vision, nil
}

// CheckNoVideo returns an error if a prompt contains a video token.
func (e *Encoder) CheckNoVideo(prompt []int32) error {
	v := e.processor.Vision
	if v == nil || v.Config.Video == 0 {
		return nil
	}
	if i := slices.Index(prompt, int32(v.Config.Video)); i >= 0 {
		return fmt.Errorf("token %d of the prompt stands for a video: videos are not supported: %w", i, runtime.ErrPictures)
	}
	return nil
}

// Place assigns pictures to the image tokens of a prompt, in order. A picture has one image token, which is
// expanded to one for each of its vectors, or a run of that many. It returns nil without pictures. It reads only the
// headers of the pictures; they are decoded later, one at a time.
func (e *Encoder) Place(
	ctx context.Context, prompt []int32, pictures []runtime.Picture, limit int,
) (*Prompt, error) {
	if len(pictures) == 0 {
		return nil, nil
	}
	s, err := e.need()
	if err != nil {
		return nil, err
	}
	image := int32(s.Config.Image)
	runs := processor.RunsOf(prompt, image)
	if len(runs) != len(pictures) {
		return nil, fmt.Errorf("the prompt has places for %d pictures, %d were given: %w", len(runs), len(pictures),
			runtime.ErrPictures)
	}
	p := &Prompt{}
	known := map[[sha256.Size]byte]*Picture{}
	done := 0
	for i, run := range runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		key := sha256.Sum256(pictures[i].Data)
		of := known[key]
		if of == nil {
			size, err := s.Measure(pictures[i], i)
			if err != nil {
				return nil, err
			}
			of = &Picture{
				Measured: size, picture: pictures[i], name: pictures[i].Label(i), hash: binary.LittleEndian.Uint64(key[:]),
			}
			known[key], p.Distinct = of, append(p.Distinct, of)
		}
		n := of.Tokens()
		if length := run[1] - run[0]; length != 1 && length != n {
			return nil, fmt.Errorf("%s makes %d tokens, the prompt has %d for it at token %d: %w", pictures[i].Label(i), n,
				length, run[0], runtime.ErrPictures)
		}
		p.Tokens = append(p.Tokens, prompt[done:run[0]]...)
		p.Spans = append(p.Spans, span{len(p.Tokens), len(p.Tokens) + n, of})
		p.Tokens = append(p.Tokens, slices.Repeat([]int32{image}, n)...)
		done = run[1]
		if len(p.Tokens)+len(prompt)-done >= limit {
			return nil, fmt.Errorf("the prompt has %d tokens with %s, the model's context %d: %w",
				len(p.Tokens)+len(prompt)-done, pictures[i].Label(i), limit, runtime.ErrPrompt)
		}
	}
	p.Tokens = append(p.Tokens, prompt[done:]...)
	p.assignPositions()
	return p, nil
}

// Encode decodes a picture and runs it through the vision tower. do runs a function on the engine's thread.
func (e *Encoder) Encode(
	ctx context.Context, s *Picture, do func(context.Context, func() error) error,
) error {
	p := e.Decode(ctx, s)
	defer p.Free()
	if p.Err != nil {
		return p.Err
	}
	return do(ctx, func() error { return e.RunTower(ctx, s, p.Patches) })
}

// RunTower runs the patches of a picture through the vision tower. It runs on the engine's thread.
func (e *Encoder) RunTower(ctx context.Context, s *Picture, p vision.Patches) error {
	vectors, err := e.tower.Encode(ctx, mlx.FromSlice(e.thread, p.Pixels, p.Rows*p.Cols, p.Width()), p.Rows, p.Cols)
	if err != nil {
		return err
	}
	mlx.Eval(vectors)
	s.vectors = mlx.Keep(vectors)
	return nil
}

// Probe runs a gray square through the vision tower, if there is one. Vectors that are not finite are an error. do runs
// a function on the engine's thread.
func (e *Encoder) Probe(ctx context.Context, do func(context.Context, func() error) error) error {
	if e.tower == nil {
		return nil
	}
	v := e.processor.Vision
	side := v.Config.Patch * v.Config.Merge
	gray := &vision.Picture{Width: side, Height: side, Pix: slices.Repeat([]uint8{100}, 3*side*side)}
	patches, err := v.Processor.Patches(gray)
	if err != nil {
		return err
	}
	picture := &Prompt{Distinct: []*Picture{{}}}
	defer func() {
		_ = e.thread.Do(context.Background(), func() error { picture.Free(); return nil })
	}()
	if err := do(ctx, func() error { return e.RunTower(ctx, picture.Distinct[0], patches) }); err != nil {
		return err
	}
	return do(ctx, func() error {
		for i, v := range picture.Distinct[0].vectors.Float32s() {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fmt.Errorf("element %d of the vectors of a picture is %v: %w", i, v, runtime.ErrImage)
			}
		}
		return nil
	})
}
