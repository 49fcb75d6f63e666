package table

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrWritten reports tensors that cannot be written in a style.
var ErrWritten = errors.New("cannot be written for other programs")

// Style is the convention that a checkpoint is written in.
type Style string

// The styles.
const (
	HuggingFace Style = "Hugging Face" // what the model's class in transformers reads
	MLX         Style = "MLX"          // what mlx-lm writes: stacked experts, one tensor per projection
	ForGGUF     Style = "GGUF"         // as MLX, under the names that gguf.Map maps
)

// Written is a tensor of a checkpoint to write.
type Written struct {
	Name  string
	Shape []int64
	From  []WrittenPiece // their concatenation is the tensor
	Add   float64        // added to each element
	// Transposed: the last two dimensions of the tensor are a matrix, and those of From its transpose.
	Transposed bool
}

// WrittenPiece is a contiguous range of a model tensor's elements.
type WrittenPiece struct {
	Tensor       string // canonical name
	Begin, Count int64
}

// Published says how checkpoints of a model type have the tensors of its table. The zero value is as the table says.
type Published struct {
	Experts     string // layout of experts: PerExpert or Transposed; "" = Fused
	Projections string // layout of projections that can be fused: Fused or AsPublishedFirst; "" = the table's
	Apart       bool   // files of GGUF have the projections as the table has them
	// Nested: the text model in a multimodal checkpoint is under NestedText. NestedMLX: mlx-lm has it there always.
	Nested, NestedMLX bool
	// Shifted: mlx-lm does not shift a checkpoint whose experts are stacked, so that it is written shifted.
	Shifted bool
	// HuggingFace and MLX are pairs of parts of canonical names and of what transformers, or mlx-lm, has instead.
	HuggingFace, MLX []string
}

// WriteOptions controls how a table's tensors are written.
type WriteOptions struct {
	Style     Style
	Published Published
	// Shifted applies mlx-lm's changes to Qwen 3.5: norm weights plus 1, convolutions as [channels, kernel, 1].
	Shifted bool
}

// Write returns the names and layouts that a model's tensors, given under their canonical names, have in a checkpoint
// of the chosen style. It is the inverse of [Table.Check]: the written tensors match the same table entries.
func (t Table) Write(have []TensorInfo, o WriteOptions) ([]Written, error) {
	w := writing{table: t, options: o, forms: map[string]*fusedSource{}}
	shapes := make(map[string][]int64, len(have))
	for _, h := range have {
		shapes[h.Name] = h.Shape
	}
	for _, s := range t.Specs {
		if shape, ok := shapes[s.Name]; ok {
			w.add(s, shape)
		}
	}
	return w.finish()
}

type writing struct {
	table   Table
	options WriteOptions
	out     []Written
	forms   map[string]*fusedSource // fused sources that several tensors share, by name
	order   []string
}

// fusedSource is a source of a form, and the model tensors that its elements come from.
type fusedSource struct {
	at     int // index in writing.out
	pieces []placed
}

type placed struct {
	begin int64 // in the source
	WrittenPiece
}

func (w *writing) add(s Spec, shape []int64) {
	form := w.form(s)
	if form == nil {
		out := Written{Name: w.name(s.Name), Shape: shape, From: []WrittenPiece{{s.Name, 0, Elements(shape)}}}
		if w.options.Shifted && s.Offset {
			out.Add = 1
		}
		if strings.HasSuffix(out.Name, PublishedRow) {
			out.Shape = s.Reshape[0]
		}
		if w.options.Shifted && strings.HasSuffix(s.Name, convWeight) && len(s.Reshape) > 0 {
			out.Shape = s.Reshape[0]
		}
		w.out = append(w.out, out)
		return
	}
	m := Matched{Spec: s, Make: form.Make, Repeat: 1, Runs: form.Runs}
	var names []string
	for e := range max(form.Count, 1) {
		for i, name := range form.Names {
			before, after, each := strings.Cut(name, "*")
			if each {
				before += strconv.FormatInt(e, 10) + after
			} else if e > 0 {
				continue
			}
			names = append(names, before)
			w.source(before, form.Shapes[i], form.Transposed)
		}
	}
	switch form.Make {
	case Copy:
		m.Runs = whole(1, Elements(shape))
	case Stack:
		m.Runs = stackRuns(*form)
	case Interleave:
		m.Repeat, m.Runs = form.Count, interleaveRuns(*form)
	}
	var at int64
	for p := range m.Pieces() {
		j := w.forms[names[p.Source]]
		j.pieces = append(j.pieces, placed{p.Begin, WrittenPiece{s.Name, at, p.Count}})
		at += p.Count
	}
}

// source adds a form's source to the output, unless it is there.
func (w *writing) source(name string, shape []int64, transposed bool) {
	if w.forms[name] == nil {
		w.forms[name] = &fusedSource{at: len(w.out)}
		w.order = append(w.order, name)
		w.out = append(w.out, Written{Name: w.name(name), Shape: shape, Transposed: transposed})
	}
}

// finish orders the pieces of each fused source. It fails if they leave a gap or overlap.
func (w *writing) finish() ([]Written, error) {
	for _, name := range w.order {
		j := w.forms[name]
		slices.SortFunc(j.pieces, func(a, b placed) int { return cmp.Compare(a.begin, b.begin) })
		var end int64
		out := &w.out[j.at]
		for _, p := range j.pieces {
			if p.begin != end {
				return nil, fmt.Errorf("tensor %s: %w: element %d of it is in no tensor of the model, or in two",
					name, ErrWritten, end)
			}
			end += p.Count
			out.From = append(out.From, p.WrittenPiece)
		}
		if end != Elements(out.Shape) {
			return nil, fmt.Errorf("tensor %s: %w: %d of its %d elements are in the model",
				name, ErrWritten, end, Elements(out.Shape))
		}
	}
	return w.out, nil
}

// form returns the layout that a tensor is written in, or nil for the table's own.
func (w *writing) form(s Spec) *Form {
	var want string
	published := w.options.Published
	switch {
	case s.Layout == AllHeads:
		want = EachHead
	case s.Layout == Unfused && w.options.Style != HuggingFace && slices.ContainsFunc(s.Forms, isRenamed):
		want = Renamed
	case s.Layout == Unfused && w.options.Style != ForGGUF && published.Projections == AsPublishedFirst:
		want = AsPublishedFirst
	case s.Layout == Unfused && w.options.Style != ForGGUF && slices.ContainsFunc(s.Forms, isPublished):
		want = AsPublished
	case s.Layout == Unfused && published.Projections == Fused && (w.options.Style != ForGGUF || !published.Apart):
		want = Fused
	case s.Layout == InRows && w.options.Style == HuggingFace:
		want = InColumns
	case (s.Layout == Fused || s.Layout == InRows) && w.options.Style != HuggingFace:
		want = Stacked
	case s.Layout == Fused && published.Experts != "":
		want = published.Experts
	default:
		return nil
	}
	i := slices.IndexFunc(s.Forms, func(f Form) bool { return f.Layout == want })
	if i < 0 {
		return nil
	}
	return &s.Forms[i]
}

// NestedText is the prefix of a multimodal checkpoint's text model in mlx-lm and in the first Gemma 3.
const NestedText = "language_model."

// name translates a canonical name to the style's prefix.
func (w *writing) name(canonical string) string {
	canonical = publishedName(canonical, w.options)
	i := w.table.part(canonical)
	text := slices.IndexFunc(w.table.Parts, func(p Part) bool { return p.Name == "text" })
	if text < 0 || !w.nests(w.table.Parts[text].Prefix) {
		return canonical
	}
	if i == text {
		return NestedText + TextPrefix + canonical[len(w.table.Parts[i].Prefix):]
	}
	if i < 0 && strings.HasPrefix(canonical, "lm_head.") {
		return NestedText + canonical
	}
	return canonical
}

// nests reports whether the text model's names get NestedText.
func (w *writing) nests(prefix string) bool {
	published := w.options.Published
	if w.options.Style != HuggingFace && published.NestedMLX {
		return true
	}
	return prefix == NestedPrefix && (w.options.Style != HuggingFace || published.Nested)
}
