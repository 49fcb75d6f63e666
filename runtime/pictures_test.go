package runtime

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/safetensors"
	"github.com/ingotml/ingot/vision"
)

// Token ids of testdata/models/qwen3_5-vision.
const visionStart, visionEnd, imagePad, videoPad = 380, 381, 382, 383

// shown returns pictures of testdata/pictures, in order.
func shown(t *testing.T, names ...string) (pictures []Picture) {
	t.Helper()
	for i, name := range names {
		b, err := os.ReadFile(filepath.Join(modeltest.Dir(""), "..", "pictures", name))
		if err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, Picture{ID: i, Data: b})
	}
	return pictures
}

func readReference(t *testing.T, name string) *Reference {
	t.Helper()
	ref, err := ReadReference(modeltest.Reference(name))
	if err != nil {
		t.Fatal(err)
	}
	return ref
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
	out, err := elements[int32](f, tensor)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var pictureCases = map[string][]string{
	"fits": {"shapes.png"}, "resized": {"wide.png"}, "photo": {"photo.jpg"},
	"several": {"shapes.png", "wide.png", "shapes.png"},
}

// Prompts with pictures have the same logits and greedy continuation as in transformers. The JPEG decoder differs from
// libjpeg in a few pixels.
func TestComparePictures(t *testing.T) {
	l := loadModel(t, "qwen3_5-vision")
	for name, files := range pictureCases {
		ref := readReference(t, "qwen3_5-vision-"+name)
		bound, kl := modeltest.Tolerance, 1e-6
		if name == "photo" {
			bound, kl = 0.05, 1e-4
		}
		c, greedy, err := l.Compare(t.Context(), ref, shown(t, files...)...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		t.Logf("%s: largest difference %.2g deviations, mean KL %.2g", name, c.MaxAbs/c.Scale, c.MeanKL)
		if c.MaxAbs > bound*c.Scale || c.MeanKL > kl || c.Top1 != 1 || !*greedy {
			t.Errorf("%s: %+v, greedy %v", name, c, *greedy)
		}
	}
	ref := readReference(t, "qwen3_5-vision-fits")
	_, _, err := l.Compare(t.Context(), ref, shown(t, "shapes.png", "wide.png")...)
	if !errors.Is(err, ErrPictures) || !strings.Contains(err.Error(), "places for 1 pictures, 2 were given") {
		t.Errorf("a picture too many: %v", err)
	}
	if _, _, err = l.Compare(t.Context(), ref, shown(t, "wide.png")...); !errors.Is(err, ErrPictures) ||
		!strings.Contains(err.Error(), "picture 1 makes 7 tokens, the prompt has 6") {
		t.Errorf("another size: %v", err)
	}
	short := *ref
	at := slices.Index(ref.Tokens, imagePad)
	short.Tokens = append(slices.Clone(ref.Tokens[:at+1]), ref.Tokens[at+6:]...)
	if _, _, err = l.Compare(t.Context(), &short, shown(t, "shapes.png")...); !errors.Is(err, ErrReference) {
		t.Errorf("a reference that is not expanded: %v", err)
	}
}

// Positions equal those of transformers' get_rope_index.
func TestPicturePositions(t *testing.T) {
	l := loadModel(t, "qwen3_5-vision")
	for name, files := range pictureCases {
		ref := readReference(t, "qwen3_5-vision-"+name)
		p, err := l.placePictures(t.Context(), ref.Tokens, shown(t, files...), 1000)
		if err != nil {
			t.Fatal(err)
		}
		if want := ints(t, "qwen3_5-vision-"+name, "positions"); !slices.Equal(slices.Concat(p.grid[:]...), want) {
			t.Errorf("%s: positions %v, want %v", name, p.grid, want)
		}
		if want := ints(t, "qwen3_5-vision-"+name, "shift"); p.shift != int(want[0]) {
			t.Errorf("%s: shift %d, want %d", name, p.shift, want[0])
		}
	}
}

// A picture that appears twice is encoded once.
func TestRepeatedPicture(t *testing.T) {
	l := loadModel(t, "qwen3_5-vision")
	p, err := l.placePictures(t.Context(), []int32{1, imagePad, 2, imagePad, 3, imagePad},
		shown(t, "shapes.png", "wide.png", "shapes.png"), 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.distinct) != 2 || len(p.spans) != 3 || p.spans[0].picture != p.spans[2].picture ||
		p.spans[0].picture == p.spans[1].picture {
		t.Errorf("%d pictures in %d spans", len(p.distinct), len(p.spans))
	}
	want := [][2]int{{1, 7}, {8, 15}, {16, 22}}
	for i, s := range p.spans {
		if s.start != want[i][0] || s.end != want[i][1] {
			t.Errorf("span %d is %d to %d, want %v", i, s.start, s.end, want[i])
		}
	}
	if len(p.expanded) != 22 || p.expanded[15] != 3 || p.expanded[21] != imagePad {
		t.Errorf("prompt %v", p.expanded)
	}
}

// A single image token stands for a whole picture, with the same result as the expanded prompt.
func TestGeneratePictures(t *testing.T) {
	l := loadModel(t, "qwen3_5-vision")
	ref := readReference(t, "qwen3_5-vision-several")
	pictures := shown(t, "shapes.png", "wide.png", "shapes.png")
	var prompt []int32
	for i, id := range ref.Tokens {
		if id != imagePad || ref.Tokens[i-1] != imagePad {
			prompt = append(prompt, id)
		}
	}
	r := Request{Prompt: prompt, Pictures: pictures, MaxTokens: len(ref.Greedy), IgnoreEOS: true}
	// penalties need the value of each token at once
	for _, sampling := range []Sampling{{}, {PresencePenalty: 1e-9, RepeatLastN: 4}} {
		r.Sampling = sampling
		ids, _, last, err := collect(t.Context(), l, r)
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
	p, err := l.placePictures(t.Context(), []int32{1, imagePad, 2, imagePad}, shown(t, "shapes.png", "wide.png"), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.distinct {
		if err := l.encodePicture(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { _ = l.do(context.Background(), func() error { p.free(); return nil }) }()
	for size := 1; size <= len(p.expanded)+2; size++ {
		rows := map[int]int{}
		err := l.do(t.Context(), func() error {
			for start := 0; start < len(p.expanded); start += size {
				part := partOf(p, start, min(size, len(p.expanded)-start))
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
		for i, id := range p.expanded {
			if want := map[bool]int{true: 1}[id == imagePad]; rows[i] != want {
				t.Errorf("chunks of %d: row %d has %d vectors, want %d", size, i, rows[i], want)
			}
		}
	}
	if part := partOf(p, len(p.expanded), 1); part.Grid[0] != nil || part.Shift != p.shift || part.Vectors != nil {
		t.Errorf("after the prompt: %+v", part)
	}
}

// CountPrompt returns the number of tokens that the prompt is evaluated with.
func TestCountPrompt(t *testing.T) {
	l, shapes := loadModel(t, "qwen3_5-vision"), shown(t, "shapes.png")
	for _, prompt := range [][]int32{{1, visionStart, imagePad, visionEnd}, {1, 2}} {
		pictures := shapes[:min(len(shapes), l.PicturePlaces(prompt))]
		_, _, last, err := collect(t.Context(), l, Request{Prompt: prompt, Pictures: pictures, MaxTokens: 1})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := l.CountPrompt(t.Context(), prompt, pictures); n != last.Stats.PromptTokens || err != nil {
			t.Errorf("%v: %d tokens, %v; %d were evaluated", prompt, n, err, last.Stats.PromptTokens)
		}
	}
	if _, err := l.CountPrompt(t.Context(), []int32{imagePad}, []Picture{{}}); !errors.Is(err, ErrPictures) {
		t.Errorf("an empty picture: %v", err)
	}
}

func TestPicturesRefused(t *testing.T) {
	l, text := loadModel(t, "qwen3_5-vision"), loadModel(t, "llama-default")
	shapes := shown(t, "shapes.png")
	one := []int32{1, visionStart, imagePad, visionEnd}
	for _, test := range []struct {
		name, want string
		l          *Local
		r          Request
		is         error
	}{
		{"a model that does not see", "llama without a vision tower", text,
			Request{Prompt: []int32{1}, Pictures: shapes}, ErrPictures},
		{"no place", "places for 0 pictures, 1 were given", l, Request{Prompt: []int32{1}, Pictures: shapes}, ErrPictures},
		{"empty", "picture 1: the picture is empty", l, Request{Prompt: one, Pictures: []Picture{{}}}, vision.ErrPicture},
		{"no picture", "picture 1: neither PNG", l,
			Request{Prompt: one, Pictures: []Picture{{Data: []byte("text")}}}, ErrPictures},
		{"too long", "the model's context 256", l,
			Request{Prompt: append(make([]int32, 249), one...), Pictures: shapes}, ErrPrompt},
		{"a video", "token 1 of the prompt stands for a video", l, Request{Prompt: []int32{1, videoPad}}, ErrPictures},
	} {
		_, _, _, err := collect(t.Context(), test.l, test.r)
		if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := collect(ctx, l, Request{Prompt: one, Pictures: shapes}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The bounds of pictures come from either file. An error names the file that cannot be used.
func TestPreprocessorFiles(t *testing.T) {
	const old, part = "preprocessor_config.json", "processor_config.json"
	for _, test := range []struct {
		name   string
		files  map[string]string
		limit  int
		failed string
	}{
		{"none", nil, 2097152, ""},
		{"published", map[string]string{old: `{"max_pixels": 70000}`}, 70000, ""},
		{"transformers 5", map[string]string{old: `{"max_pixels": 70000}`,
			part: `{"image_processor": {"max_pixels": 80000}}`}, 80000, ""},
		{"another processor", map[string]string{old: `{"max_pixels": 70000}`,
			part: `{"processor_class": "Qwen3VLProcessor"}`}, 70000, ""},
		{"bad value", map[string]string{old: `{"max_pixels": "many"}`}, 0, old},
		{"bad value in a part",
			map[string]string{part: `{"image_processor": {"patch_size": 14}}`}, 0, part + ": patch_size is 14"},
		{"no object", map[string]string{part: `[1]`}, 0, part},
	} {
		dir := t.TempDir()
		copyModel(t, dir, "qwen3_5-vision", test.files)
		store, entry := packFrom(t, dir, "pictures")
		f := files{store, entry.Image}
		config, err := f.config()
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.readVision(config)
		switch {
		case test.failed != "":
			if !errors.Is(err, vision.ErrConfig) || !strings.Contains(err.Error(), test.failed) {
				t.Errorf("%s: %v", test.name, err)
			}
		case err != nil || s.processor.MaxPixels != test.limit:
			t.Errorf("%s: %+v, %v", test.name, s, err)
		}
	}
}

// copyModel copies config.json and weights of a checkpoint, and writes further files.
func copyModel(t *testing.T, dir, name string, more map[string]string) {
	t.Helper()
	for _, file := range []string{"config.json", "model.safetensors"} {
		b, err := os.ReadFile(filepath.Join(modeltest.Dir(name), file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range more {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Probe detects damaged weights of a vision tower without a picture.
func TestProbeTower(t *testing.T) {
	l := loadModel(t, "qwen3_5-vision")
	if n, err := l.Probe(t.Context()); err != nil || n != 8 {
		t.Errorf("%d tokens, %v", n, err)
	}
	l.vision.processor.Mean[0] = math.NaN()
	if _, err := l.Probe(t.Context()); !errors.Is(err, ErrImage) ||
		!strings.Contains(err.Error(), "vectors of a picture") {
		t.Errorf("pixels that are no numbers: %v", err)
	}
}

func TestShowPictures(t *testing.T) {
	l := loadModel(t, "qwen3_5-vision")
	const p = "<|vision_start|><|image_pad|><|vision_end|>"
	a, b := Picture{ID: 0, Data: []byte("a")}, Picture{ID: 7, Data: []byte("b")}
	for _, test := range []struct {
		text     string
		pictures []Picture
		want     string
		order    string
	}{
		{"see [img-0]", nil, "see [img-0]", ""},
		{"see", []Picture{a}, p + "see", "a"},
		{"[img-7] and [img-0], [img-7]", []Picture{a, b}, p + " and " + p + ", " + p, "bab"},
		{"see [img-7]", []Picture{a, b}, p + "see " + p, "ab"},
	} {
		text, order, err := l.ShowPictures(test.text, test.pictures)
		var got string
		for _, o := range order {
			got += string(o.Data)
		}
		if err != nil || text != test.want || got != test.order {
			t.Errorf("%q: %q with %s, %v; want %q with %s", test.text, text, got, err, test.want, test.order)
		}
	}
	for _, test := range []struct {
		text     string
		pictures []Picture
		want     string
	}{
		{"[img-1]", []Picture{a}, "[img-1], which is not among"},
		{"[img-99999999999999999999]", []Picture{a}, "[img-99999999999999999999], which"},
		{"", []Picture{a, a}, "two pictures have the ID 0"},
	} {
		if _, _, err := l.ShowPictures(test.text, test.pictures); !errors.Is(err, ErrPictures) ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v", test.text, err)
		}
	}
	ids, err := l.Encode(p + "x" + p)
	if err != nil || l.PicturePlaces(ids) != 2 || !slices.Equal(ids[:3], []int32{visionStart, imagePad, visionEnd}) {
		t.Errorf("ids %v, %v", ids, err)
	}
}

func partOf(p *promptPictures, start, n int) nn.Part {
	return p.part(nn.Part{Tokens: make([]int32, n)}, start)
}
