package processor

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/vision"
)

// CountPrompt returns the number of tokens of a prompt with its pictures. It reads only the headers of the pictures.
func (p *Processor) CountPrompt(ctx context.Context, prompt []int32, pictures []runtime.Picture) (int, error) {
	if len(pictures) == 0 {
		return len(prompt), nil
	}
	s, err := p.needImageToken()
	if err != nil {
		return 0, err
	}
	n := len(prompt)
	for i, run := range RunsOf(prompt, int32(s.Config.Image)) {
		if i == len(pictures) {
			break
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		size, err := s.Measure(pictures[i], i)
		if err != nil {
			return 0, err
		}
		if run[1]-run[0] == 1 {
			n += size.Tokens() - 1
		}
	}
	return n, nil
}

// Measure reads the header of the picture with index i. It returns an error if decoding needs too much memory.
func (s *Vision) Measure(p runtime.Picture, i int) (vision.Measured, error) {
	size, err := s.Processor.Measure(p.Data)
	if err == nil && size.Memory > limits.PictureMemory {
		err = fmt.Errorf("it takes %d MiB to decode, more than %d: make it smaller or save it in another format: %w",
			size.Memory>>20, limits.PictureMemory>>20, vision.ErrPicture)
	}
	if err != nil {
		err = runtime.PictureError(p.Label(i), err)
	}
	return size, err
}

// RunsOf returns the start and end of each run of a token.
func RunsOf(tokens []int32, token int32) (runs [][2]int) {
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
