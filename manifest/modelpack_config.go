package manifest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
)

// modelPackConfig returns the content of the config blob. It omits createdAt, because a date would change the digest.
// The schema allows no additional fields.
func modelPackConfig(c Config, diffIDs []digest.Digest) modelspec.Model {
	return modelspec.Model{
		Descriptor: modelspec.ModelDescriptor{Name: c.Name, Family: c.Family, Licenses: c.Licenses},
		ModelFS:    modelspec.ModelFS{Type: "layers", DiffIDs: diffIDs},
		Config: modelspec.ModelConfig{
			Architecture: c.Architecture,
			Format:       c.Format,
			ParamSize:    FormatParamSize(c.Params),
			Precision:    mapList(c.DType, precisionOf),
			Quantization: c.Quantization,
			Capabilities: modelPackCapabilities(c.Capabilities),
		},
	}
}

// decodeModelPackConfig decodes the config blob. ingot's annotations on the manifest override it.
func decodeModelPackConfig(b []byte, annotations map[string]string) (Config, error) {
	var m modelspec.Model
	if err := json.Unmarshal(b, &m); err != nil {
		return Config{}, err
	}
	c := Config{
		Name:         m.Descriptor.Name,
		Family:       m.Descriptor.Family,
		Architecture: m.Config.Architecture,
		ModelType:    annotations[AnnotationModelType],
		Format:       m.Config.Format,
		Quantization: m.Config.Quantization,
		DType:        mapList(m.Config.Precision, dtypeOf),
		Params:       ParseParamSize(m.Config.ParamSize),
		Capabilities: capabilitiesOf(m.Config.Capabilities),
	}
	if len(m.Descriptor.Licenses) > 0 {
		c.Licenses = m.Descriptor.Licenses
	}
	if list := annotations[annotationCapabilities]; list != "" {
		c.Capabilities = strings.Split(list, ",")
	}
	for _, number := range []struct {
		key string
		to  *int64
	}{
		{annotationParams, &c.Params},
		{annotationContextLength, &c.ContextLength},
		{annotationEmbeddingLength, &c.EmbeddingLength},
	} {
		text, ok := annotations[number.key]
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return Config{}, fmt.Errorf("annotation %s: %q is not a whole number", number.key, Clip(text))
		}
		*number.to = int64(n)
	}
	return c, nil
}

func modelPackCapabilities(caps []string) *modelspec.ModelCapabilities {
	if len(caps) == 0 {
		return nil
	}
	has := func(c string) bool { return slices.Contains(caps, c) }
	reasoning, tools, embedding := has(CapThinking), has(CapTools), has(CapEmbedding)
	m := &modelspec.ModelCapabilities{
		InputTypes: []modelspec.Modality{modelspec.TextModality},
		Reasoning:  &reasoning,
		ToolUsage:  &tools,
		Embedding:  &embedding,
	}
	if has(CapVision) {
		m.InputTypes = append(m.InputTypes, modelspec.ImageModality)
	}
	if has(CapAudio) {
		m.InputTypes = append(m.InputTypes, modelspec.AudioModality)
	}
	if has(CapCompletion) {
		m.OutputTypes = append(m.OutputTypes, modelspec.TextModality)
	}
	if embedding {
		m.OutputTypes = append(m.OutputTypes, modelspec.EmbeddingModality)
	}
	return m
}

func capabilitiesOf(m *modelspec.ModelCapabilities) []string {
	if m == nil {
		return nil
	}
	is := func(b *bool) bool { return b != nil && *b }
	var caps []string
	for _, c := range []struct {
		name string
		has  bool
	}{
		{CapCompletion, slices.Contains(m.OutputTypes, modelspec.TextModality)},
		{CapEmbedding, is(m.Embedding) || slices.Contains(m.OutputTypes, modelspec.EmbeddingModality)},
		{CapVision, slices.Contains(m.InputTypes, modelspec.ImageModality)},
		{CapAudio, slices.Contains(m.InputTypes, modelspec.AudioModality)},
		{CapTools, is(m.ToolUsage)},
		{CapThinking, is(m.Reasoning)},
	} {
		if c.has {
			caps = append(caps, c.name)
		}
	}
	return caps
}

// precisions maps dtypes of safetensors to the precisions that model-spec lists (docs/config.md, "precision"). Other
// dtypes keep their name.
var precisions = []struct{ dtype, precision string }{
	{"BF16", "bfloat16"},
	{"F16", "float16"},
	{"F32", "float32"},
	{"F64", "float64"},
	{"F8_E4M3", "float8_e4m3"},
	{"F8_E5M2", "float8_e5m2"},
	{"C64", "complex64"},
	{"I8", "int8"},
	{"I16", "int16"},
	{"I32", "int32"},
	{"I64", "int64"},
	{"U8", "uint8"},
	{"U16", "uint16"},
	{"U32", "uint32"},
	{"U64", "uint64"},
	{"BOOL", "bool"},
}

func precisionOf(dtype string) string {
	for _, p := range precisions {
		if p.dtype == dtype {
			return p.precision
		}
	}
	return dtype
}

func dtypeOf(precision string) string {
	for _, p := range precisions {
		if p.precision == precision {
			return p.dtype
		}
	}
	return precision
}

// mapList applies f to each element of a comma-separated list.
func mapList(list string, f func(string) string) string {
	if list == "" {
		return ""
	}
	parts := strings.Split(list, ",")
	for i, p := range parts {
		parts[i] = f(p)
	}
	return strings.Join(parts, ",")
}

const paramScales = "kmbtq" // thousand, million, ... in the spelling of model-spec (docs/config.md, "paramSize")

// FormatParamSize rounds to at most one decimal: 8030261248 is 8b, 1235814400 is 1.2b. It returns "" for less than 50.
func FormatParamSize(n int64) string {
	tenths := float64(n) / 100 // of a thousand
	scale := 0
	for scale < len(paramScales)-1 && math.Round(tenths) >= 10000 {
		tenths /= 1000
		scale++
	}
	rounded := int64(math.Round(tenths))
	if rounded <= 0 {
		return ""
	}
	text := strconv.FormatInt(rounded/10, 10)
	if rounded%10 != 0 {
		text += "." + strconv.FormatInt(rounded%10, 10)
	}
	return text + paramScales[scale:scale+1]
}

// ParseParamSize parses a paramSize that any tool may have written. It returns 0 (unknown) if it cannot.
func ParseParamSize(s string) int64 {
	if s == "" {
		return 0
	}
	scale := strings.IndexByte(paramScales, s[len(s)-1]|0x20)
	count, err := strconv.ParseFloat(s[:len(s)-1], 64)
	if scale < 0 || err != nil {
		return 0
	}
	n := count * math.Pow10(3*(scale+1))
	if !(n >= 1 && n < math.MaxInt64) {
		return 0
	}
	return int64(math.Round(n))
}
