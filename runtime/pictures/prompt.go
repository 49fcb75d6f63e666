package pictures

import (
	"github.com/ingotml/ingot/cache/prefix"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/vision"
)

// Prompt holds what the pictures of a prompt add to its rows. It belongs to one request.
type Prompt struct {
	Tokens   []int32    // the prompt, with one image token for each vector
	Grid     [3][]int32 // time, height and width position of each token
	Shift    int        // position of generated text, relative to its index in the sequence
	Spans    []span     // in order
	Distinct []*Picture // without duplicates
}

// span is the range of a picture's tokens in a prompt.
type span struct {
	Start, End int // tokens
	Picture    *Picture
}

// Picture is a distinct picture of a prompt, which may appear in it several times.
type Picture struct {
	vision.Measured
	picture runtime.Picture
	name    string     // used in errors
	hash    uint64     // of the file
	vectors *mlx.Array // [tokens, hidden], kept; nil before the picture is encoded
}

// assignPositions computes the three positions of each token. Text advances all three together. All tokens of a picture
// have the same time position; their rows and columns count from there. Text after a picture continues beyond its
// longer side.
func (p *Prompt) assignPositions() {
	at, done := int32(0), 0
	text := func(end int) {
		for ; done < end; done++ {
			for axis := range p.Grid {
				p.Grid[axis] = append(p.Grid[axis], at)
			}
			at++
		}
	}
	for _, s := range p.Spans {
		text(s.Start)
		rows, cols := int32(s.Picture.Rows/s.Picture.Merge), int32(s.Picture.Cols/s.Picture.Merge)
		for i := range rows * cols {
			for axis, offset := range [3]int32{0, i / cols, i % cols} {
				p.Grid[axis] = append(p.Grid[axis], at+offset)
			}
		}
		at += max(rows, cols)
		done = s.End
	}
	text(len(p.Tokens))
	p.Shift = int(at) - len(p.Tokens)
}

// Part adds pictures and positions to a part of the text that begins at token start.
func (p *Prompt) Part(part nn.Part, start int) nn.Part {
	if p == nil {
		return part
	}
	end := start + len(part.Tokens)
	if start >= len(p.Tokens) { // generated text
		part.Shift = p.Shift
		return part
	}
	for axis := range p.Grid {
		part.Grid[axis] = p.Grid[axis][start:end]
	}
	for _, s := range p.Spans {
		from, to := max(s.Start, start), min(s.End, end)
		if from < to {
			x := mlx.Slice(s.Picture.vectors, mlx.Range(from-s.Start, to-s.Start), mlx.All())
			part.Vectors = append(part.Vectors, nn.Vectors{Row: from - start, X: x})
		}
	}
	return part
}

// GeneratedShift returns the position of generated text, relative to its index in the sequence.
func (p *Prompt) GeneratedShift() int {
	if p == nil {
		return 0
	}
	return p.Shift
}

// Free frees the vectors. It runs on the engine's thread.
func (p *Prompt) Free() {
	if p == nil {
		return
	}
	for _, s := range p.Distinct {
		mlx.Free(s.vectors)
		s.vectors = nil
	}
}

// Keys returns the prefix cache's keys of a prompt: token ids, and the content hash of a picture at its positions.
func (p *Prompt) Keys(prompt []int32) []prefix.Key {
	keys := prefix.Tokens(prompt)
	if p == nil {
		return keys
	}
	for _, s := range p.Spans {
		for i := s.Start; i < s.End; i++ {
			keys[i] = prefix.Picture(s.Picture.hash)
		}
	}
	return keys
}
