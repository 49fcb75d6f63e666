package processor

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/runtime"
)

// pictureMark is the place of a picture in a text.
var pictureMark = regexp.MustCompile(`\[img-([0-9]+)\]`)

// ShowPictures replaces the marks [img-ID] in a text by the model's tokens for a picture. It returns the pictures in
// the order of their places; a picture may have several. Pictures without a mark are placed before the text. Without
// pictures, marks are plain text.
func (p *Processor) ShowPictures(text string, pictures []runtime.Picture) (string, []runtime.Picture, error) {
	if len(pictures) == 0 {
		return text, nil, nil
	}
	place, err := p.placeholder()
	if err != nil {
		return "", nil, err
	}
	byID := map[int]runtime.Picture{}
	for _, shown := range pictures {
		if _, twice := byID[shown.ID]; twice {
			return "", nil, fmt.Errorf("two pictures have the ID %d: %w", shown.ID, runtime.ErrPictures)
		}
		byID[shown.ID] = shown
	}
	var shown []runtime.Picture
	var unknown string
	marked := pictureMark.ReplaceAllStringFunc(text, func(m string) string {
		id, err := strconv.Atoi(pictureMark.FindStringSubmatch(m)[1])
		p, ok := byID[id]
		if (err != nil || !ok) && unknown == "" {
			unknown = m
		}
		shown = append(shown, p)
		return place
	})
	if unknown != "" {
		return "", nil, fmt.Errorf("the prompt shows %s, which is not among its pictures: %w", unknown, runtime.ErrPictures)
	}
	var first []runtime.Picture
	for _, p := range pictures {
		if !slices.ContainsFunc(shown, func(s runtime.Picture) bool { return s.ID == p.ID }) {
			first = append(first, p)
		}
	}
	return strings.Repeat(place, len(first)) + marked, append(first, shown...), nil
}

// PicturePlaces returns the number of places for pictures in a prompt.
func (p *Processor) PicturePlaces(prompt []int32) int {
	if p.Vision == nil || p.Vision.Config.Image == 0 {
		return 0
	}
	return len(RunsOf(prompt, int32(p.Vision.Config.Image)))
}

// CheckPictures returns an error if the model cannot process pictures: as far as its small files tell, or the processor
// of a loaded model knows.
func (p *Processor) CheckPictures() error {
	if p.NoTower {
		return p.noTowerError()
	}
	_, err := p.needImageToken()
	return err
}

// placeholder returns the text that stands for a picture: its start token, one image token, and its end token.
func (p *Processor) placeholder() (string, error) {
	s, err := p.needImageToken()
	if err != nil {
		return "", err
	}
	if p.tok == nil {
		return "", fmt.Errorf("%w: give the prompt as token ids", runtime.ErrNoTokenizer)
	}
	text := ""
	for _, id := range []int{s.Config.Start, s.Config.Image, s.Config.End} {
		if id == 0 {
			continue
		}
		token, ok := p.tok.Token(int32(id))
		if !ok {
			return "", fmt.Errorf("config.json uses token %d for pictures, which the tokenizer does not have: %w", id,
				runtime.ErrPictures)
		}
		text += token
	}
	return text, nil
}
