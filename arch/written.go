package arch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrWritten says that a model's tensors cannot be written in a style.
var ErrWritten = errors.New("cannot be written for other programs")

// Style is for whom a checkpoint is written.
type Style string

// The styles.
const (
	HuggingFace Style = "Hugging Face" // what the model's class in transformers reads
	MLX         Style = "MLX"          // what mlx-lm writes: packed experts lie in one tensor for each projection
)

// Written is a tensor of a checkpoint, made from those of a model.
type Written struct {
	Name  string
	Shape []int64
	From  []WrittenPiece // whose elements, one after the other, are the tensor's
	Add   float64        // to each element
}

// WrittenPiece is a stretch of elements of a tensor.
type WrittenPiece struct {
	Tensor       string // canonical name
	Begin, Count int64
}

// WriteOptions says how a table's tensors are written.
type WriteOptions struct {
	Style     Style
	ModelType string // model_type of config.json, which may be an alias of the table's
	Shifted   bool   // with what mlx-lm does to a Qwen 3.5: 1 added to the norms' weights, convolutions [channels, kernel, 1]
}

// Write tells how the tensors that are there, under their canonical names, are laid out and named for others. It is the inverse of
// [Table.Check]: what it gives, written and checked, matches the same tensors.
func (t Table) Write(have []TensorInfo, o WriteOptions) ([]Written, error) {
	w := writing{table: t, options: o, forms: map[string]*joined{}}
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
	forms   map[string]*joined // sources of forms that several tensors share, by name
	order   []string
}

// joined is a source of a form: which elements of it are elements of which tensor.
type joined struct {
	at     int // in out
	pieces []placed
}

type placed struct {
	begin int64 // in the source
	WrittenPiece
}

func (w *writing) add(s Spec, shape []int64) {
	form := w.form(s)
	if form == nil {
		out := Written{Name: w.name(s.Name), Shape: shape, From: []WrittenPiece{{s.Name, 0, elements(shape)}}}
		if w.options.Shifted && s.Offset {
			out.Add = 1
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
			w.source(before, form.Shapes[i])
		}
	}
	switch form.Make {
	case Copy:
		m.Runs = whole(1, elements(shape))
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

// source makes place for a form's source.
func (w *writing) source(name string, shape []int64) {
	if w.forms[name] == nil {
		w.forms[name] = &joined{at: len(w.out)}
		w.order = append(w.order, name)
		w.out = append(w.out, Written{Name: w.name(name), Shape: shape})
	}
}

// finish puts the pieces of each source in order. There is none that is not whole.
func (w *writing) finish() ([]Written, error) {
	for _, name := range w.order {
		j := w.forms[name]
		slices.SortFunc(j.pieces, func(a, b placed) int { return cmp.Compare(a.begin, b.begin) })
		var end int64
		out := &w.out[j.at]
		for _, p := range j.pieces {
			if p.begin != end {
				return nil, fmt.Errorf("tensor %s: %w: element %d of it is in no tensor of the model, or in two", name, ErrWritten, end)
			}
			end += p.Count
			out.From = append(out.From, p.WrittenPiece)
		}
		if end != elements(out.Shape) {
			return nil, fmt.Errorf("tensor %s: %w: %d of its %d elements are in the model", name, ErrWritten, end, elements(out.Shape))
		}
	}
	return w.out, nil
}

// onePerExpert are the model types whose experts are published one by one. Those of the others are fused.
var onePerExpert = []string{"qwen3_moe", "glm4_moe_lite", "qwen3_next"}

// form is the layout in which a tensor is written, nil for its own.
func (w *writing) form(s Spec) *Form {
	var want string
	switch {
	case s.Layout == split && w.options.ModelType == "qwen3_next": // the projections of gated delta layers are joined there
		want = fused
	case s.Layout == fused && w.options.Style == MLX:
		want = stacked
	case s.Layout == fused && slices.Contains(onePerExpert, w.options.ModelType):
		want = perExpert
	default:
		return nil
	}
	i := slices.IndexFunc(s.Forms, func(f Form) bool { return f.Layout == want })
	if i < 0 {
		return nil
	}
	return &s.Forms[i]
}

// nestedText is the prefix of text models beside others, where mlx-lm and the first Gemma 3 have it.
const nestedText = "language_model."

// name is what a canonical name becomes.
func (w *writing) name(canonical string) string {
	i := w.table.part(canonical)
	text := slices.IndexFunc(w.table.Parts, func(p Part) bool { return p.Name == "text" })
	if text < 0 || !w.nests(w.table.Parts[text].Prefix) {
		return canonical
	}
	if i == text {
		return nestedText + textPrefix + canonical[len(w.table.Parts[i].Prefix):]
	}
	if i < 0 && strings.HasPrefix(canonical, "lm_head.") {
		return nestedText + canonical
	}
	return canonical
}

// nests tells whether the text model's names start with another prefix than the canonical one. mlx-lm nests Qwen 3.5 always, and
// reads a Gemma 3 beside a tower under no other prefix, in which transformers reads it too.
func (w *writing) nests(prefix string) bool {
	if w.options.Style == MLX && (w.options.ModelType == "qwen3_5" || w.options.ModelType == "qwen3_5_moe") {
		return true
	}
	return prefix == nestedPrefix && (w.options.Style == MLX || w.options.ModelType == "gemma3")
}
