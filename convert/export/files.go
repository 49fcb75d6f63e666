package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/quantize"
)

// indexFile returns the index, which maps each tensor to its shard.
func (x *folder) indexFile() ([]byte, error) {
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
func (x *folder) addFiles(config source.File) error {
	index, err := x.indexFile()
	if err != nil {
		return err
	}
	x.files = append(x.files, file{source.IndexName, index})
	edited, err := x.config(pyjson.Plain(config.Data))
	if err != nil {
		return err
	}
	x.files = append(x.files, file{source.ConfigName, pyjson.AsWritten(edited, config.Data)})
	for _, f := range x.src.Files {
		switch {
		case f.Name == source.ConfigName:
		case f.Kind == manifest.KindFile || f.Kind == manifest.KindLicense:
			if strings.HasSuffix(f.Name, ".safetensors") || strings.EqualFold(f.Name, modelfileName) ||
				strings.HasPrefix(f.Name, draftFolder+"/") {
				return fmt.Errorf("file %s: %w: the name is reserved for another file of the folder", f.Name, ErrExport)
			}
			x.files = append(x.files, file{f.Name, f.Data})
		}
	}
	return nil
}

// config returns the configuration with the types of quantized tensors added, or with the element type after a cast.
func (x *folder) config(data []byte) ([]byte, error) {
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

func (x *folder) wasPacked() bool {
	for _, s := range x.stored {
		if s.Quant != 0 {
			return true
		}
	}
	return false
}

// quantization returns mlx-lm's quantization key: the type of most elements, and the types of the other modules by
// path.
func (x *folder) quantization() ([]byte, error) {
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
