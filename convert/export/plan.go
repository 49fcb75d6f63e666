package export

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// folder is the planned contents of a checkpoint folder.
type folder struct {
	src    *source.Source
	opts   Options
	files  []file
	arrays []array
	shards []shard
	draft  *folder
	notes  []string

	stored map[string]*storedTensor
	types  map[string]quantize.Type // of quantized modules, by path
	params map[quantize.Type]int64
	total  int64 // elements of all tensors
}

type file struct {
	name string
	data []byte
}

// array is a tensor in a shard.
type array struct {
	safetensors.Tensor
	group int // arrays of one group are in the same shard
	rule  string
	mode  string
	from  arrayReader
}

// shard is a safetensors file.
type shard struct {
	name   string
	arrays []array
}

const draftFolder = "draft"

// planFolder plans a folder. It reads headers, and the norms that mlx-lm may have shifted.
func planFolder(src *source.Source, opts Options) (*folder, error) {
	x := &folder{
		src: src, opts: opts,
		stored: map[string]*storedTensor{}, types: map[string]quantize.Type{}, params: map[quantize.Type]int64{},
	}
	if _, err := src.Match(); err != nil {
		return nil, err
	}
	var have []table.TensorInfo
	for _, w := range src.Tensors() {
		s, err := newStored(w)
		if err != nil {
			return nil, err
		}
		x.stored[w.Name] = s
		have = append(have, table.TensorInfo{Name: w.Name, DType: string(w.DType), Shape: w.Shape, File: w.Path})
	}
	config, _ := src.File(source.ConfigName)
	o := table.WriteOptions{Style: table.HuggingFace, Published: arch.Published(modelTypeOf(config.Data))}
	if x.packed() {
		o.Style = table.MLX
		shifted, err := x.shifted(o.Published)
		if err != nil {
			return nil, err
		}
		o.Shifted = shifted
	}
	written, err := src.Model.Table().Write(have, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src.From, err)
	}
	for i, w := range written {
		if err := x.addTensor(i, w); err != nil {
			return nil, fmt.Errorf("%s: %w", src.From, err)
		}
	}
	x.splitShards()
	if err := x.addFiles(config); err != nil {
		return nil, fmt.Errorf("%s: %w", src.From, err)
	}
	if src.Draft != nil {
		if x.draft, err = planFolder(src.Draft, opts); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func modelTypeOf(config []byte) string {
	var c struct {
		ModelType string `json:"model_type"`
	}
	_ = pyjson.Unmarshal(config, &c)
	return c.ModelType
}

// packed reports whether any tensor stays quantized.
func (x *folder) packed() bool {
	if x.opts.Dequantize != 0 {
		return false
	}
	for _, s := range x.stored {
		if s.Quant != 0 {
			return true
		}
	}
	return false
}

// shifted reports whether norms and convolutions of a Qwen 3.5 are written in mlx-lm's variant. The norms of a model
// imported from mlx-lm are F32, and adding 1 restores values that a narrower type holds exactly. Other models are
// written unshifted: mlx-lm reads them and shifts them itself. The exception is Qwen3-Next, which mlx-lm does not shift
// if its experts are stacked.
func (x *folder) shifted(p table.Published) (bool, error) {
	convolves, all := false, true
	for _, s := range x.src.Model.Table().Specs {
		t := x.stored[s.Name]
		if t == nil {
			continue
		}
		convolves = convolves || strings.HasSuffix(s.Name, ".conv1d.weight")
		if !s.Offset || !all {
			continue
		}
		if t.DType != safetensors.F32 {
			all = false
			continue
		}
		kind, err := x.narrow(t, 1)
		if err != nil {
			return false, err
		}
		all = kind != safetensors.F32
	}
	return convolves && (all || p.Shifted), nil
}

// narrow returns the narrowest type that represents all elements of a small tensor exactly, after add is added to each.
func (x *folder) narrow(t *storedTensor, add float64) (safetensors.DType, error) {
	data, err := readAdded(t, add)
	if err != nil {
		return "", err
	}
	for _, d := range []quantize.DType{quantize.BF16, quantize.F16} {
		small, back := make([]byte, len(data)/2), make([]byte, len(data))
		if quantize.Cast(small, d, data, quantize.F32) == nil && quantize.Cast(back, quantize.F32, small, d) == nil &&
			slices.Equal(back, data) {
			return safetensors.DType(d), nil
		}
	}
	return safetensors.F32, nil
}

// addTensor adds a tensor's arrays.
func (x *folder) addTensor(group int, w table.Written) error {
	first := x.stored[w.From[0].Tensor]
	r := arrayReader{from: w.From, stored: x.stored}
	if w.Transposed {
		r.rows, r.columns = w.Shape[len(w.Shape)-1], w.Shape[len(w.Shape)-2]
	}
	n := safetensors.Tensor{Shape: w.Shape}.NumElements()
	x.total += n
	for _, p := range w.From {
		s := x.stored[p.Tensor]
		if s.Quant != first.Quant || s.DType != first.DType || s.Global != first.Global {
			return fmt.Errorf("tensor %s: %w: its parts have different types, %s in %s and %s in %s; "+
				"export it with --dequantize",
				w.Name, ErrExport, first.format(), first.Name, s.format(), s.Name)
		}
	}
	add := func(name string, part arrayPart, d safetensors.DType, shape []int64) {
		r := r
		r.part, r.source, r.to = part, first, d
		x.arrays = append(x.arrays, array{
			Tensor: safetensors.Tensor{Name: name, DType: d, Shape: shape}, group: group, rule: first.rule,
			mode: first.Quant.Mode(), from: r,
		})
	}
	switch {
	case first.Quant != 0 && x.opts.Dequantize != 0:
		add(w.Name, decoded, safetensors.DType(x.opts.Dequantize.DType()), w.Shape)
	case first.Quant != 0:
		return x.addPacked(w, first, n, add)
	case w.Add != 0:
		d, err := x.narrow(first, w.Add)
		if err != nil {
			return err
		}
		if d == safetensors.F32 && first.DType != safetensors.F32 { // as mlx-lm rounds it
			d = first.DType
		}
		r.add = float32(w.Add)
		add(w.Name, added, d, w.Shape)
	default:
		add(w.Name, elementsPart, first.DType, w.Shape)
	}
	return nil
}

// addPacked adds a quantized tensor's codes, scales and biases.
func (x *folder) addPacked(
	w table.Written, first *storedTensor, n int64, add func(string, arrayPart, safetensors.DType, []int64),
) error {
	path, ok := strings.CutSuffix(w.Name, ".weight")
	if !ok || w.Transposed {
		return fmt.Errorf("tensor %s: %w: no program reads a quantized tensor of this name; export it with --dequantize",
			w.Name, ErrExport)
	}
	if first.Global != 0 {
		return fmt.Errorf("tensor %s: %w: mlx-lm does not read nvfp4 with a scale of the whole tensor; "+
			"export it with --dequantize", w.Name, ErrExport)
	}
	parts, err := first.Quant.Parts(quantize.DType(first.DType), w.Shape)
	if err != nil {
		return source.InTensor(w.Name, err)
	}
	for _, p := range w.From {
		if g := int64(first.Quant.Group()); p.Begin%g != 0 || p.Count%g != 0 {
			return fmt.Errorf("tensor %s: %w: groups of %s would be split; export it with --dequantize",
				w.Name, ErrExport, p.Tensor)
		}
	}
	add(w.Name, codesPart, safetensors.U32, parts.Packed.Shape)
	add(path+".scales", scalesPart, safetensors.DType(parts.Scales.DType), parts.Scales.Shape)
	if parts.Biases.DType != "" {
		add(path+".biases", biasesPart, safetensors.DType(parts.Biases.DType), parts.Biases.Shape)
	}
	x.types[path] = first.Quant
	x.params[first.Quant] += n
	return nil
}

// splitShards distributes the arrays over shards. In each shard, arrays with wider elements come first, so that all are
// aligned.
func (x *folder) splitShards() {
	var size int64
	for i := 0; i < len(x.arrays); {
		j, bytes := i, int64(0)
		for ; j < len(x.arrays) && x.arrays[j].group == x.arrays[i].group; j++ {
			bytes += x.arrays[j].Size()
		}
		if len(x.shards) == 0 || size > 0 && bytes > x.opts.MaxShard-size {
			x.shards = append(x.shards, shard{})
			size = 0
		}
		s := &x.shards[len(x.shards)-1]
		s.arrays = append(s.arrays, x.arrays[i:j]...)
		size += bytes
		i = j
	}
	for i := range x.shards {
		s := &x.shards[i]
		s.name = "model.safetensors"
		if len(x.shards) > 1 {
			s.name = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(x.shards))
		}
		slices.SortFunc(s.arrays, func(a, b array) int {
			return cmp.Or(cmp.Compare(b.DType.Bits(), a.DType.Bits()), cmp.Compare(a.Name, b.Name))
		})
	}
}

// metadata returns a shard's metadata. It lists the versions of the quantization rules by family, so that an import by
// this program preserves them.
func (x *folder) metadata(s shard) map[string]string {
	meta := map[string]string{"format": "pt"}
	rules := map[string]string{}
	for _, a := range s.arrays {
		if a.from.part != codesPart {
			continue
		}
		if rule, seen := rules[a.mode]; seen && rule != a.rule {
			rules[a.mode] = ""
		} else {
			rules[a.mode] = a.rule
		}
	}
	maps.DeleteFunc(rules, func(_, rule string) bool { return rule == "" })
	if x.packed() {
		meta["format"] = "mlx"
	}
	if len(rules) > 0 {
		meta[blob.MetaRule] = strings.Join(slices.Sorted(maps.Values(rules)), ",")
	}
	return meta
}

func (x *folder) bytes() int64 {
	var n int64
	for _, a := range x.arrays {
		n += a.Size()
	}
	return n
}
