package batch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pictures"
	"github.com/ingotml/ingot/runtime/runtimetest"
	"github.com/ingotml/ingot/safetensors"
	"github.com/ingotml/ingot/vision"
)

// Positions equal those of transformers' get_rope_index.
func TestPicturePositions(t *testing.T) {
	l := loadModel(t, "qwen3_5-vision")
	for name, files := range runtimetest.PictureCases {
		ref := runtimetest.ReadReference(t, "qwen3_5-vision-"+name)
		p, err := l.model.Pictures.Place(t.Context(), ref.Tokens, runtimetest.Pictures(t, files...), 1000)
		if err != nil {
			t.Fatal(err)
		}
		if want := ints(t, "qwen3_5-vision-"+name, "positions"); !slices.Equal(slices.Concat(p.Grid[:]...), want) {
			t.Errorf("%s: positions %v, want %v", name, p.Grid, want)
		}
		if want := ints(t, "qwen3_5-vision-"+name, "shift"); p.Shift != int(want[0]) {
			t.Errorf("%s: shift %d, want %d", name, p.Shift, want[0])
		}
	}
}

// A picture that appears twice is encoded once.
func TestRepeatedPicture(t *testing.T) {
	l := loadModel(t, "qwen3_5-vision")
	p, err := l.model.Pictures.Place(t.Context(), []int32{1, runtimetest.ImagePad, 2, runtimetest.ImagePad, 3,
		runtimetest.ImagePad},
		runtimetest.Pictures(t, "shapes.png", "wide.png", "shapes.png"), 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Distinct) != 2 || len(p.Spans) != 3 || p.Spans[0].Picture != p.Spans[2].Picture ||
		p.Spans[0].Picture == p.Spans[1].Picture {
		t.Errorf("%d pictures in %d spans", len(p.Distinct), len(p.Spans))
	}
	want := [][2]int{{1, 7}, {8, 15}, {16, 22}}
	for i, s := range p.Spans {
		if s.Start != want[i][0] || s.End != want[i][1] {
			t.Errorf("span %d is %d to %d, want %v", i, s.Start, s.End, want[i])
		}
	}
	if len(p.Tokens) != 22 || p.Tokens[15] != 3 || p.Tokens[21] != runtimetest.ImagePad {
		t.Errorf("prompt %v", p.Tokens)
	}
}

// A single image token stands for a whole picture, with the same result as the expanded prompt.
func TestGeneratePictures(t *testing.T) {
	l := loadModel(t, "qwen3_5-vision")
	ref := runtimetest.ReadReference(t, "qwen3_5-vision-several")
	pictures := runtimetest.Pictures(t, "shapes.png", "wide.png", "shapes.png")
	var prompt []int32
	for i, id := range ref.Tokens {
		if id != runtimetest.ImagePad || ref.Tokens[i-1] != runtimetest.ImagePad {
			prompt = append(prompt, id)
		}
	}
	r := runtime.Request{Prompt: prompt, Pictures: pictures, MaxTokens: len(ref.Greedy), IgnoreEOS: true}
	// penalties need the value of each token at once
	for _, sampling := range []runtime.Sampling{{}, {PresencePenalty: 1e-9, RepeatLastN: 4}} {
		r.Sampling = sampling
		ids, _, last, err := runtimetest.Collect(t.Context(), l, r)
		if err != nil || !slices.Equal(ids, ref.Greedy) {
			t.Errorf("ids %v, %v; want %v", ids, err, ref.Greedy)
		}
		if last.Stats.PromptTokens != len(ref.Tokens) {
			t.Errorf("%d tokens of the prompt, want %d", last.Stats.PromptTokens, len(ref.Tokens))
		}
	}
}

// Prefill chunks may split a picture anywhere.
func TestPictureChunks(t *testing.T) {
	l := loadModel(t, "qwen3_5-vision")
	p, err := l.model.Pictures.Place(t.Context(), []int32{1, runtimetest.ImagePad, 2, runtimetest.ImagePad},
		runtimetest.Pictures(t, "shapes.png", "wide.png"), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Distinct {
		if err := l.model.Pictures.Encode(t.Context(), s, l.model.Do); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { _ = l.model.Do(context.Background(), func() error { p.Free(); return nil }) }()
	for size := 1; size <= len(p.Tokens)+2; size++ {
		rows := map[int]int{}
		err := l.model.Do(t.Context(), func() error {
			for start := 0; start < len(p.Tokens); start += size {
				part := partOf(p, start, min(size, len(p.Tokens)-start))
				for _, v := range part.Vectors {
					for i := range v.X.Dim(0) {
						rows[start+v.Row+i]++
					}
				}
				if len(part.Grid[0]) != len(part.Tokens) || part.Shift != 0 {
					t.Errorf("chunk at %d of %d: %+v", start, size, part)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range p.Tokens {
			if want := map[bool]int{true: 1}[id == runtimetest.ImagePad]; rows[i] != want {
				t.Errorf("chunks of %d: row %d has %d vectors, want %d", size, i, rows[i], want)
			}
		}
	}
	if part := partOf(p, len(p.Tokens), 1); part.Grid[0] != nil || part.Shift != p.Shift || part.Vectors != nil {
		t.Errorf("after the prompt: %+v", part)
	}
}

// CountPrompt returns the number of tokens that the prompt is evaluated with.
func TestCountPrompt(t *testing.T) {
	l, shapes := loadModel(t, "qwen3_5-vision"), runtimetest.Pictures(t, "shapes.png")
	for _, prompt := range [][]int32{{1, runtimetest.VisionStart, runtimetest.ImagePad, runtimetest.VisionEnd}, {1, 2}} {
		pictures := shapes[:min(len(shapes), l.Processor().PicturePlaces(prompt))]
		_, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt, Pictures: pictures,
			MaxTokens: 1})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := l.Processor().CountPrompt(t.Context(), prompt, pictures); n != last.Stats.PromptTokens || err != nil {
			t.Errorf("%v: %d tokens, %v; %d were evaluated", prompt, n, err, last.Stats.PromptTokens)
		}
	}
	if _, err := l.Processor().CountPrompt(t.Context(), []int32{runtimetest.ImagePad},
		[]runtime.Picture{{}}); !errors.Is(err, runtime.ErrPictures) {
		t.Errorf("an empty picture: %v", err)
	}
}

func TestPicturesRefused(t *testing.T) {
	l, text := loadModel(t, "qwen3_5-vision"), loadModel(t, "llama-default")
	shapes := runtimetest.Pictures(t, "shapes.png")
	one := []int32{1, runtimetest.VisionStart, runtimetest.ImagePad, runtimetest.VisionEnd}
	for _, test := range []struct {
		name, want string
		l          *Engine
		r          runtime.Request
		is         error
	}{
		{"a model that does not see", "llama without a vision tower", text,
			runtime.Request{Prompt: []int32{1}, Pictures: shapes}, runtime.ErrPictures},
		{"no place", "places for 0 pictures, 1 were given", l, runtime.Request{Prompt: []int32{1}, Pictures: shapes},
			runtime.ErrPictures},
		{"empty", "picture 1: the picture is empty", l, runtime.Request{Prompt: one, Pictures: []runtime.Picture{{}}},
			vision.ErrPicture},
		{"no picture", "picture 1: neither PNG", l,
			runtime.Request{Prompt: one, Pictures: []runtime.Picture{{Data: []byte("text")}}}, runtime.ErrPictures},
		{"too long", "the model's context 256", l,
			runtime.Request{Prompt: append(make([]int32, 249), one...), Pictures: shapes}, runtime.ErrPrompt},
		{"a video", "token 1 of the prompt stands for a video", l, runtime.Request{Prompt: []int32{1, runtimetest.VideoPad}},
			runtime.ErrPictures},
	} {
		_, _, _, err := runtimetest.Collect(t.Context(), test.l, test.r)
		if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := runtimetest.Collect(ctx, l, runtime.Request{Prompt: one, Pictures: shapes}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func partOf(p *pictures.Prompt, start, n int) nn.Part {
	return p.Part(nn.Part{Tokens: make([]int32, n)}, start)
}

func ints(t *testing.T, reference, name string) []int32 {
	t.Helper()
	f, err := safetensors.Open(modeltest.Reference(reference))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensor, ok := f.Lookup(name)
	if !ok {
		t.Fatalf("%s has no %s", reference, name)
	}
	out, err := runtimetest.Elements[int32](f, tensor)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
