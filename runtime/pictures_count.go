package runtime

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/vision"
)

// CountPrompt is how many tokens a prompt has with its pictures.
func (p *Processor) CountPrompt(ctx context.Context, prompt []int32, pictures []Picture) (int, error) {
	if len(pictures) == 0 {
		return len(prompt), nil
	}
	s, err := p.needPlaces()
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
		patches, err := s.read(pictures[i], i)
		if err != nil {
			return 0, err
		}
		if run[1]-run[0] == 1 {
			n += patches.Tokens() - 1
		}
	}
	return n, nil
}

// read prepares the picture that comes i-th.
func (s *sight) read(p Picture, i int) (vision.Patches, error) {
	patches, err := s.processor.Read(p.Data)
	if err != nil {
		err = badPicture{fmt.Errorf("%s: %w", p.name(i), err)}
	}
	return patches, err
}

// badPicture is an ErrPictures that says what is wrong with a picture.
type badPicture struct{ error }

func (b badPicture) Unwrap() error        { return b.error }
func (b badPicture) Is(target error) bool { return target == ErrPictures }
