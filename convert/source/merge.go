package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/adapter"
	"github.com/ingotml/ingot/convert/internal/encode"
	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
	"github.com/opencontainers/go-digest"
)

// Merged lists an adapter's changes.
type Merged struct {
	Config digest.Digest  `json:"config"` // of adapter_config.json
	Merged []MergedTensor `json:"merged"` // sorted by name
}

// MergedTensor is a tensor of the checkpoint that an adapter changes.
type MergedTensor struct {
	Name  string  `json:"name"`
	Rank  int64   `json:"rank,omitempty"`
	Scale float32 `json:"scale,omitempty"` // factor of the added product; 0 = the adapter replaces the tensor
}

// Merge replaces the tensors that an adapter changes. What it changes in parts that are not imported is left out, and
// listed with the ignored tensors.
func (src *Source) Merge(a *adapter.Adapter) (Merged, error) {
	plan := Merged{Config: digest.FromBytes(a.Config)}
	saved, err := src.settleHead(a)
	if err != nil {
		return plan, err
	}
	names := src.names()
	var ranks []int64
	whole := 0
	left := []Ignored{}
	changed := map[string]string{} // the adapter's tensor, by the changed weight's name
	change := func(at int, w Tensor, by string, m MergedTensor) error {
		if other, twice := changed[w.Name]; twice {
			return fmt.Errorf("%s: tensor %s: %w: it changes %s, and so does %s", a.Path(), by, ErrSource, w.Name, other)
		}
		changed[w.Name] = by
		src.tensors[at] = w
		plan.Merged = append(plan.Merged, m)
		return nil
	}
	for _, d := range a.Deltas {
		if drop, ok := names.drops(d.Module + ".weight"); ok {
			for _, s := range []safetensors.Source{d.A, d.B} {
				left = append(left, leftOut(d.Folder, s, drop))
			}
			continue
		}
		parts, err := src.targets(names, a, d)
		if err != nil {
			return plan, err
		}
		for _, p := range parts {
			w, err := mergedWeight(src.tensors[p.at], p.Delta)
			if err != nil {
				return plan, fmt.Errorf("%s: tensor %s: %w: %w", a.Path(), d.A.Name, ErrSource, err)
			}
			if err := change(p.at, w, d.A.Name, MergedTensor{w.Name, d.Rank, d.Scale}); err != nil {
				return plan, err
			}
			ranks = append(ranks, d.Rank)
		}
	}
	for _, t := range saved {
		if drop, ok := names.drops(t.Name); ok {
			left = append(left, leftOut(t.Folder, t.Source, drop))
			continue
		}
		at, err := src.target(names, a, t.Source, t.Name)
		if err != nil {
			return plan, err
		}
		old := src.tensors[at]
		w := wholeWeight(old, t.Folder, t.Source)
		switch {
		case !slices.Equal(w.Shape, old.Shape):
			err = fmt.Errorf("it is %v, but %s is %v", w.Shape, old.Name, old.Shape)
		case isMerged(old):
			err = fmt.Errorf("it replaces %s, which an adapter has already changed", old.Name)
		}
		if err != nil {
			return plan, fmt.Errorf("%s: tensor %s: %w: %w", a.Path(), t.Source.Name, ErrSource, err)
		}
		if err := change(at, w, t.Source.Name, MergedTensor{Name: w.Name}); err != nil {
			return plan, err
		}
		whole++
	}
	if len(plan.Merged) == 0 {
		return plan, fmt.Errorf("%s: %w: all it changes is in parts that are not imported, such as %s: %s", a.Path(),
			ErrSource, encode.Clip(left[0].Name), left[0].Reason)
	}
	slices.SortFunc(plan.Merged, func(a, b MergedTensor) int { return strings.Compare(a.Name, b.Name) })
	src.ignored = append(slices.Clone(src.ignored), left...)
	src.recognized = append(slices.Clone(src.recognized), recognizedAdapter(ranks, whole))
	return plan, nil
}

// leftOut is a tensor of an adapter for a part of the model that is not imported.
func leftOut(folder safetensors.Folder, s safetensors.Source, d table.Drop) Ignored {
	return Ignored{fileTensor(folder, s), strings.TrimPrefix(d.Part+" of the adapter", " of "), d.Reason}
}

func recognizedAdapter(ranks []int64, whole int) packed.Recognized {
	r := packed.Recognized{
		Kind: "adapter", From: []string{adapter.ConfigName, adapter.WeightsName}, Tensors: len(ranks) + whole,
	}
	if len(ranks) > 0 {
		r.What = fmt.Sprintf("LoRA of rank %d", slices.Min(ranks))
		if most := slices.Max(ranks); most != slices.Min(ranks) {
			r.What += fmt.Sprintf(" to %d", most)
		}
		r.What += fmt.Sprintf(" for %d weights", len(ranks))
	}
	if whole > 0 {
		r.What = strings.TrimPrefix(fmt.Sprintf("%s, %d tensors whole", r.What, whole), ", ")
	}
	return r
}

func isMerged(w Tensor) bool { return w.Coded != nil && strings.HasSuffix(w.Coded.Format, withAdapter) }

const withAdapter = " with an adapter"

// mergedWeight returns a weight with an adapter's product added. The sum is computed in float32 and, unless another
// type is requested, rounded once to the weight's type. The product of a quantized weight is another tensor; it is made
// only if a type is requested.
func mergedWeight(w Tensor, d adapter.Delta) (Tensor, error) {
	if len(w.Shape) != 2 || d.A.Shape[1] != w.Shape[1] || d.Out() != w.Shape[0] {
		return w, fmt.Errorf("with lora_B it changes a weight of shape %v, but %s has shape %v",
			[]int64{d.Out(), d.A.Shape[1]}, w.Name, w.Shape)
	}
	if w.Quant != 0 {
		return w, fmt.Errorf("%s is already %s; merge the adapter into the unquantized model", w.Name, w.Quant)
	}
	if w.Coded == nil && w.DType != safetensors.F32 && w.DType != safetensors.F16 && w.DType != safetensors.BF16 {
		return w, fmt.Errorf("%s is %s: only F32, F16 and BF16 can be merged", w.Name, w.DType)
	}
	out := derived(w, w.Name, "an adapter is merged into it")
	coded := out.Coded
	coded.Format = strings.TrimSuffix(coded.Format, withAdapter) + withAdapter
	coded.Read = adapter.Merged(coded.Read, d)
	coded.Parts = append(coded.Parts, d.A, d.B)
	out.parts = append(out.parts, fileTensor(d.Folder, d.A), fileTensor(d.Folder, d.B))
	return out, nil
}

// derived returns a tensor that is read from another one.
func derived(w Tensor, name, why string) Tensor {
	coded := packed.Weight{Name: name, Shape: w.Shape, DType: w.DType, Why: why, Plain: true}
	if w.Coded != nil {
		coded.Format, coded.Plain, coded.Read = w.Coded.Format, w.Coded.Plain, w.Coded.Read
		coded.Parts = slices.Clone(w.Coded.Parts)
	} else {
		coded.Format, coded.Read = strings.ToLower(string(w.DType)), w.Elements()
		coded.Parts = []safetensors.Source{{Tensor: safetensors.Tensor{Name: w.Name, DType: w.DType, Shape: w.Shape}}}
		if at, ok := w.place.(shard); ok {
			coded.Parts[0] = at.tensor
		}
	}
	return Tensor{
		Name: name, DType: w.DType, Shape: w.Shape, File: w.File, Path: w.Path, Coded: &coded, parts: slices.Clone(w.Parts()),
	}
}

// wholeWeight returns an adapter's tensor that replaces one of the base model, in the base model's element type if that
// is one of an adapter's.
func wholeWeight(old Tensor, folder safetensors.Folder, s safetensors.Source) Tensor {
	w := fileTensor(folder, s)
	w.Name, w.parts = old.Name, []Tensor{fileTensor(folder, s)}
	if old.DType == safetensors.F32 || old.DType == safetensors.F16 || old.DType == safetensors.BF16 {
		w.DType = old.DType
	}
	w.Coded = &packed.Weight{
		Name: old.Name, Shape: s.Shape, DType: w.DType,
		Format: strings.ToLower(string(s.DType)) + withAdapter, Why: "it is the adapter's",
		Plain: true, Parts: []safetensors.Source{s}, Read: adapter.Elements(s),
	}
	return w
}

// blobElements reads a plain tensor in the store. It opens the blob only for each read, because a model has thousands.
type blobElements struct{ w Tensor }

func (b blobElements) Floats(dst []byte, begin, count int64) error {
	r, closeBlob, err := b.w.Open()
	if err != nil {
		return err
	}
	defer closeBlob()
	width := int64(b.w.DType.Bits() / 8)
	buf := make([]byte, count*width)
	if err := ReadFull(r, buf, begin*width); err != nil {
		return err
	}
	return quantize.Cast(dst, quantize.F32, buf, quantize.DType(b.w.DType))
}

func (b blobElements) Codes(quantize.Blocks, int64, int64) error {
	return fmt.Errorf("tensor %s: %w: a plain tensor has no codes", b.w.Name, ErrSource)
}
