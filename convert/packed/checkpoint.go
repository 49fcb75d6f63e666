package packed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/packed/declared"
	"github.com/ingotml/ingot/convert/packed/foreign"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/safetensors"
)

// Checkpoint is the input of a [Kind]: a checkpoint's configuration and tensors.
type Checkpoint struct {
	Folder safetensors.Folder
	// HF is quantization_config or compression_config of config.json, or of its text_config; nil if there is none.
	HF json.RawMessage
	// MLX is the configuration that MLX's tools write: the key quantization of config.json, or the same object under
	// quantization_config alone.
	MLX json.RawMessage
	// HeadersOnly reads no data of tensors, except for shapes that the headers lack (bitsandbytes, HQQ). What depends on
	// data is assumed: [Result.Assumed].
	HeadersOnly bool

	assumed       map[string]int       // tensors by assumption
	orders        map[[2]int64][]int32 // consecutive groups, by columns and group size
	hfKey, mlxKey string               // their keys in config.json
	tensors       []safetensors.Source
	taken         map[string]bool
}

// NewCheckpoint describes a folder by its config.json, an object, and its tensors, sorted by name.
func NewCheckpoint(folder safetensors.Folder, config []byte, tensors []safetensors.Source) *Checkpoint {
	c := &Checkpoint{
		Folder: folder, tensors: tensors, taken: make(map[string]bool, len(tensors)),
		assumed: map[string]int{}, orders: map[[2]int64][]int32{},
	}
	var top, text map[string]json.RawMessage
	_ = pyjson.Unmarshal(config, &top) // the caller has rejected anything but an object
	_ = json.Unmarshal(top["text_config"], &text)
	for _, at := range []struct {
		keys   map[string]json.RawMessage
		prefix string
	}{{top, ""}, {text, "text_config."}} {
		if q := at.keys[declared.MLX]; c.MLX == nil && declared.IsObject(q) {
			c.MLX, c.mlxKey = q, at.prefix+declared.MLX
		}
		for _, key := range []string{declared.HF, declared.Compression} {
			switch q := at.keys[key]; {
			case !declared.IsObject(q):
			case isMLX(q):
				if c.MLX == nil {
					c.MLX, c.mlxKey = q, at.prefix+key
				}
			case c.HF == nil:
				c.HF, c.hfKey = q, at.prefix+key
			}
		}
	}
	return c
}

// isMLX reports whether a quantization_config is MLX's: it has bits or a mode but no method.
func isMLX(raw json.RawMessage) bool {
	var q map[string]json.RawMessage
	_ = json.Unmarshal(raw, &q)
	_, bits := q["bits"]
	_, mode := q["mode"]
	_, method := q["quant_method"]
	return (bits || mode) && !method
}

// Tensors lists the tensors that no kind has claimed yet, sorted by name.
func (c *Checkpoint) Tensors() []safetensors.Source {
	if len(c.taken) == 0 {
		return c.tensors
	}
	var out []safetensors.Source
	for _, t := range c.tensors {
		if !c.taken[t.Name] {
			out = append(out, t)
		}
	}
	return out
}

// Lookup finds an unclaimed tensor by name.
func (c *Checkpoint) Lookup(name string) (safetensors.Source, bool) {
	t := c.find(name)
	if t == nil {
		return safetensors.Source{}, false
	}
	return *t, true
}

// find is like Lookup without a copy, which counts for what is kept of each of 100,000 matrices. It returns nil if
// there is no such tensor.
func (c *Checkpoint) find(name string) *safetensors.Source {
	byName := func(s safetensors.Source, name string) int { return cmp.Compare(s.Name, name) }
	i, ok := slices.BinarySearchFunc(c.tensors, name, byName)
	if !ok || c.taken[name] {
		return nil
	}
	return &c.tensors[i]
}

// maxFile bounds the size of File's result.
const maxFile = 16 << 20

// File reads another file of the folder, such as hf_quant_config.json. It returns nil if the file cannot be read.
func (c *Checkpoint) File(name string) []byte {
	if info, err := c.Folder.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := c.Folder.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil
	}
	return data
}

// wrongConfig returns an error about a key of config.json.
func (c *Checkpoint) wrongConfig(key, format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w: %w", c.Folder.Path("config.json"), key, ErrSource, fmt.Errorf(format, args...))
}

// method returns quant_method of the quantization_config.
func (c *Checkpoint) method() string {
	var q struct {
		Method string `json:"quant_method"`
	}
	_ = json.Unmarshal(c.HF, &q)
	return q.Method
}

const usePlain = "use the checkpoint in bf16, f16 or f32"

// foreign describes the checkpoint for the search for packings that are not read. Where config.json names MLX, that
// kind says what is missing.
func (c *Checkpoint) foreign() foreign.Checkpoint {
	f := foreign.Checkpoint{
		Has: func(name string) bool { return c.find(name) != nil }, Method: c.method(), Key: c.hfKey,
		Codes: func(t safetensors.Source) bool { return !isPlain(t.DType) },
	}
	if c.MLX != nil && f.Method == "" {
		f.Method = declared.MLX
	}
	return f
}

// leftOver returns an error if the checkpoint is quantized and no kind has recognized it. A configuration that declares
// a quantized checkpoint whose tensors are all plain was left behind by a merge or a conversion: the tensors win, and
// the result is a note.
func (c *Checkpoint) leftOver(r Result) (note string, err error) {
	for _, t := range r.Plain {
		if what := c.packed(t); what != "" {
			return "", wrong(t, "the checkpoint is quantized in an unsupported way (%s); %s", what, usePlain)
		}
	}
	key, method := c.hfKey, ""
	switch {
	case len(r.Weights) > 0 || c.HF == nil && c.MLX == nil:
		return "", nil
	case c.MLX != nil:
		key = c.mlxKey
	case c.method() != "":
		method = fmt.Sprintf(" (quant_method %q)", c.method())
	}
	for _, t := range r.Plain {
		// Integers may be codes. Some buffers of plain models are I64.
		if !isPlain(t.DType) {
			return "", c.wrongConfig(key, "it declares a quantized checkpoint%s, but no tensor is packed in a way that "+
				"this version supports (%s is %s); %s", method, t.Name, t.DType, usePlain)
		}
	}
	return fmt.Sprintf("config.json: %s declares a quantized checkpoint%s, but all tensors are plain: it is ignored",
		key, method), nil
}

// isPlain reports whether tensors of a type are used as they are.
func isPlain(d safetensors.DType) bool {
	return isFloat(d) || slices.Contains([]safetensors.DType{safetensors.F64, safetensors.I64, safetensors.Bool}, d)
}

// packed returns the reason that an apparently plain tensor must be part of a packed one, or "".
func (c *Checkpoint) packed(t safetensors.Source) string {
	for _, suffix := range []string{
		".weight_packed", ".qweight", ".weight_scale_inv", ".weight_scale", ".qzeros", ".g_idx",
	} {
		if strings.HasSuffix(t.Name, suffix) {
			return "its name is that of a packed weight's array"
		}
	}
	switch t.DType {
	case safetensors.F8E4M3, safetensors.F8E5M2, safetensors.F4, safetensors.F8E4M3FNUZ, safetensors.F8E5M2FNUZ,
		safetensors.F6E2M3, safetensors.F6E3M2, safetensors.F8E8M0:
		return "its type is " + string(t.DType)
	}
	return ""
}
