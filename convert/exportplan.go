package convert

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// export is the planned contents of a folder.
type export struct {
	inv    *Inventory
	opts   ExportOptions
	files  []exportFile
	arrays []exportArray
	shards []shard
	draft  *export
	notes  []string

	stored map[string]*storedTensor
	types  map[string]quantize.Type // of quantized modules, by path
	params map[quantize.Type]int64
	total  int64 // elements of all tensors
}

type exportFile struct {
	name string
	data []byte
}

// exportArray is a tensor in a shard.
type exportArray struct {
	safetensors.Tensor
	group int // arrays of one group are in the same shard
	rule  string
	mode  string
	from  arrayReader
}

// shard is a safetensors file.
type shard struct {
	name   string
	arrays []exportArray
}

const draftFolder = "draft"

// planExport plans a folder. It reads headers, and the norms that mlx-lm may have shifted.
func planExport(inv *Inventory, opts ExportOptions) (*export, error) {
	x := &export{
		inv: inv, opts: opts,
		stored: map[string]*storedTensor{}, types: map[string]quantize.Type{}, params: map[quantize.Type]int64{},
	}
	if _, err := inv.match(); err != nil {
		return nil, err
	}
	var have []arch.TensorInfo
	for _, w := range inv.weights {
		s, err := openStored(w)
		if err != nil {
			return nil, err
		}
		x.stored[w.Name] = s
		have = append(have, arch.TensorInfo{Name: w.Name, DType: string(w.DType), Shape: w.Shape, File: w.path})
	}
	config, _ := inv.file(configName)
	o := arch.WriteOptions{Style: arch.HuggingFace, ModelType: modelTypeOf(config.Data)}
	if x.packed() {
		o.Style = arch.MLX
		shifted, err := x.shifted(o.ModelType)
		if err != nil {
			return nil, err
		}
		o.Shifted = shifted
	}
	written, err := inv.Model.Table().Write(have, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", inv.From, err)
	}
	for i, w := range written {
		if err := x.addTensor(i, w); err != nil {
			return nil, fmt.Errorf("%s: %w", inv.From, err)
		}
	}
	x.splitShards()
	if err := x.addFiles(config); err != nil {
		return nil, fmt.Errorf("%s: %w", inv.From, err)
	}
	if inv.Draft != nil {
		if x.draft, err = planExport(inv.Draft, opts); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func modelTypeOf(config []byte) string {
	var c struct {
		ModelType string `json:"model_type"`
	}
	_ = json.Unmarshal(config, &c)
	return c.ModelType
}

// packed reports whether any tensor stays quantized.
func (x *export) packed() bool {
	if x.opts.Dequantize != 0 {
		return false
	}
	for _, s := range x.stored {
		if s.quant != 0 {
			return true
		}
	}
	return false
}

// shifted reports whether norms and convolutions of a Qwen 3.5 are written in mlx-lm's variant. The norms of a model
// imported from mlx-lm are F32, and adding 1 restores values that a narrower type holds exactly. Other models are
// written unshifted: mlx-lm reads them and shifts them itself. The exception is Qwen3-Next, which mlx-lm does not shift
// if its experts are stacked.
func (x *export) shifted(modelType string) (bool, error) {
	convolves, all := false, true
	for _, s := range x.inv.Model.Table().Specs {
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
	return convolves && (all || modelType == "qwen3_next"), nil
}

// narrow returns the narrowest type that represents all elements of a small tensor exactly, after add is added to each.
func (x *export) narrow(t *storedTensor, add float64) (safetensors.DType, error) {
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
func (x *export) addTensor(group int, w arch.Written) error {
	first := x.stored[w.From[0].Tensor]
	r := arrayReader{from: w.From, stored: x.stored}
	n := safetensors.Tensor{Shape: w.Shape}.NumElements()
	x.total += n
	for _, p := range w.From {
		s := x.stored[p.Tensor]
		if s.quant != first.quant || s.DType != first.DType || s.global != first.global {
			return fmt.Errorf("tensor %s: %w: its parts have different types, %s in %s and %s in %s; "+
				"export it with --dequantize",
				w.Name, ErrExport, first.format(), first.Name, s.format(), s.Name)
		}
	}
	add := func(name string, part arrayPart, d safetensors.DType, shape []int64) {
		r := r
		r.part, r.source, r.to = part, first, d
		x.arrays = append(x.arrays, exportArray{
			Tensor: safetensors.Tensor{Name: name, DType: d, Shape: shape}, group: group, rule: first.rule,
			mode: first.quant.Mode(), from: r,
		})
	}
	switch {
	case first.quant != 0 && x.opts.Dequantize != 0:
		add(w.Name, decoded, safetensors.DType(x.opts.Dequantize.DType()), w.Shape)
	case first.quant != 0:
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
func (x *export) addPacked(
	w arch.Written, first *storedTensor, n int64, add func(string, arrayPart, safetensors.DType, []int64),
) error {
	path, ok := strings.CutSuffix(w.Name, ".weight")
	if !ok {
		return fmt.Errorf("tensor %s: %w: no program reads a quantized tensor of this name; export it with --dequantize",
			w.Name, ErrExport)
	}
	if first.global != 0 {
		return fmt.Errorf("tensor %s: %w: mlx-lm does not read nvfp4 with a scale of the whole tensor; "+
			"export it with --dequantize", w.Name, ErrExport)
	}
	parts, err := first.quant.Parts(quantize.DType(first.DType), w.Shape)
	if err != nil {
		return wrapTensor(w.Name, err)
	}
	for _, p := range w.From {
		if g := int64(first.quant.Group()); p.Begin%g != 0 || p.Count%g != 0 {
			return fmt.Errorf("tensor %s: %w: groups of %s would be split; export it with --dequantize",
				w.Name, ErrExport, p.Tensor)
		}
	}
	add(w.Name, codesPart, safetensors.U32, parts.Packed.Shape)
	add(path+".scales", scalesPart, safetensors.DType(parts.Scales.DType), parts.Scales.Shape)
	if parts.Biases.DType != "" {
		add(path+".biases", biasesPart, safetensors.DType(parts.Biases.DType), parts.Biases.Shape)
	}
	x.types[path] = first.quant
	x.params[first.quant] += n
	return nil
}

// splitShards distributes the arrays over shards. In each shard, arrays with wider elements come first, so that all are
// aligned.
func (x *export) splitShards() {
	var size int64
	for i := 0; i < len(x.arrays); {
		j, bytes := i, int64(0)
		for ; j < len(x.arrays) && x.arrays[j].group == x.arrays[i].group; j++ {
			bytes += x.arrays[j].Size()
		}
		if len(x.shards) == 0 || size > 0 && bytes > x.opts.shard-size {
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
		slices.SortFunc(s.arrays, func(a, b exportArray) int {
			return cmp.Or(cmp.Compare(b.DType.Bits(), a.DType.Bits()), cmp.Compare(a.Name, b.Name))
		})
	}
}

// metadata returns a shard's metadata. It lists the versions of the quantization rules by family, so that an import by
// this program preserves them.
func (x *export) metadata(s shard) map[string]string {
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
		meta[metaRule] = strings.Join(slices.Sorted(maps.Values(rules)), ",")
	}
	return meta
}

func (x *export) bytes() int64 {
	var n int64
	for _, a := range x.arrays {
		n += a.Size()
	}
	return n
}

// indexFile returns the index, which maps each tensor to its shard.
func (x *export) indexFile() ([]byte, error) {
	var index struct {
		Metadata struct {
			Parameters int64 `json:"total_parameters"`
			Size       int64 `json:"total_size"`
		} `json:"metadata"`
		WeightMap map[string]string `json:"weight_map"`
	}
	index.WeightMap = map[string]string{}
	index.Metadata.Size, index.Metadata.Parameters = x.bytes(), x.total
	for _, s := range x.shards {
		for _, a := range s.arrays {
			index.WeightMap[a.Name] = s.name
		}
	}
	data, err := json.MarshalIndent(index, "", "  ")
	return append(data, '\n'), err
}

// addFiles adds the configuration, the index, and the model's other files.
func (x *export) addFiles(config File) error {
	index, err := x.indexFile()
	if err != nil {
		return err
	}
	x.files = append(x.files, exportFile{indexName, index})
	edited, err := x.config(config.Data)
	if err != nil {
		return err
	}
	x.files = append(x.files, exportFile{configName, edited})
	for _, f := range x.inv.Files {
		switch {
		case f.Name == configName:
		case f.Kind == manifest.KindFile || f.Kind == manifest.KindLicense:
			if strings.HasSuffix(f.Name, ".safetensors") || strings.EqualFold(f.Name, modelfileName) ||
				strings.HasPrefix(f.Name, draftFolder+"/") {
				return fmt.Errorf("file %s: %w: the name is reserved for another file of the folder", f.Name, ErrExport)
			}
			x.files = append(x.files, exportFile{f.Name, f.Data})
		}
	}
	return nil
}

// config returns the configuration with the types of quantized tensors added, or with the element type after a cast.
func (x *export) config(data []byte) ([]byte, error) {
	if len(x.types) > 0 {
		text, err := x.quantization()
		if err != nil {
			return nil, err
		}
		return appendKeys(data, []string{"quantization", "quantization_config"}, text)
	}
	if x.opts.Dequantize != 0 && x.wasPacked() {
		name := map[quantize.Type]string{
			quantize.ToBF16: "bfloat16", quantize.ToF16: "float16", quantize.ToF32: "float32",
		}[x.opts.Dequantize]
		return setDType(data, name)
	}
	return data, nil
}

func (x *export) wasPacked() bool {
	for _, s := range x.stored {
		if s.quant != 0 {
			return true
		}
	}
	return false
}

// quantization returns mlx-lm's quantization key: the type of most elements, and the types of the other modules by
// path.
func (x *export) quantization() ([]byte, error) {
	most := slices.MaxFunc(slices.Sorted(maps.Keys(x.params)),
		func(a, b quantize.Type) int { return cmp.Compare(x.params[a], x.params[b]) })
	entry := func(t quantize.Type) map[string]any {
		return map[string]any{"group_size": t.Group(), "bits": t.Bits(), "mode": t.Mode()}
	}
	all := entry(most)
	for path, t := range x.types {
		if t != most {
			all[path] = entry(t)
		}
	}
	return json.MarshalIndent(all, "  ", "  ")
}

var errJSON = errors.New("config.json is not a JSON object")
