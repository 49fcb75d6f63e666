package runtime

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/vision"
)

// CountPrompt returns the number of tokens of a prompt with its pictures. It reads only the headers of the pictures.
func (p *Processor) CountPrompt(ctx context.Context, prompt []int32, pictures []Picture) (int, error) {
	if len(pictures) == 0 {
		return len(prompt), nil
	}
	s, err := p.needImageToken()
	if err != nil {
		return 0, err
	}
	n := len(prompt)
	for i, run := range runsOf(prompt, int32(s.Image)) {
		if i == len(pictures) {
			break
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		size, err := s.measure(pictures[i], i)
		if err != nil {
			return 0, err
		}
		if run[1]-run[0] == 1 {
			n += size.Tokens() - 1
		}
	}
	return n, nil
}

// measure reads the header of the picture with index i. It returns an error if decoding needs too much memory.
func (s *visionConfig) measure(p Picture, i int) (vision.Measured, error) {
	size, err := s.processor.Measure(p.Data)
	if err == nil && size.Memory > limits.PictureMemory {
		err = fmt.Errorf("it takes %d MiB to decode, more than %d: make it smaller or save it in another format: %w",
			size.Memory>>20, limits.PictureMemory>>20, vision.ErrPicture)
	}
	if err != nil {
		err = badPicture{fmt.Errorf("%s: %w", p.name(i), err)}
	}
	return size, err
}

// badPicture is an ErrPictures that wraps what is wrong with a picture.
type badPicture struct{ error }

func (b badPicture) Unwrap() error        { return b.error }
func (b badPicture) Is(target error) bool { return target == ErrPictures }
