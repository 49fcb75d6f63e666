package blob

import (
	"fmt"
	"strconv"

	"github.com/ingotml/ingot/quantize"
)

// Suffixes of the keys of a quantized tensor's arrays. The key of its codes is the tensor's name.
const (
	ScaleSuffix  = ".scale"
	BiasSuffix   = ".bias"
	GlobalSuffix = ".global_scale"
)

// suffixes are those of all arrays but the codes.
var suffixes = []string{ScaleSuffix, BiasSuffix, GlobalSuffix}

// Keys of a quantized tensor's metadata.
const (
	MetaType  = "quant_type"
	MetaGroup = "group_size"
	MetaRule  = "quant_rule"
)

// FormatError reports contents that a blob must not have.
type FormatError struct{ Problem string }

func (e *FormatError) Error() string { return e.Problem }

func formatError(format string, args ...any) error { return &FormatError{fmt.Sprintf(format, args...)} }

// metadata describes a quantized tensor; nil for other tensors.
func metadata(t quantize.Type, rule string) map[string]string {
	if t == 0 || t.IsCast() {
		return nil
	}
	m := map[string]string{MetaType: typeName(t), MetaGroup: strconv.Itoa(t.Group())}
	if rule != "" {
		m[MetaRule] = rule
	}
	return m
}

// typeName returns a type's name without its group size, which other readers of blobs expect in a separate key.
func typeName(t quantize.Type) string {
	if t.Mode() == "affine" {
		return t.WithGroup(64).String()
	}
	return t.String()
}

// typeOf returns the type that metadata states; 0 if the tensor is not quantized.
func typeOf(metadata map[string]string) (quantize.Type, error) {
	name := metadata[MetaType]
	if name == "" {
		return 0, nil
	}
	t, _, err := quantize.ParseType(name)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", MetaType, err)
	}
	if group := metadata[MetaGroup]; group != "" && group != strconv.Itoa(t.Group()) {
		n, _ := strconv.Atoi(group)
		if t = t.WithGroup(n); t == 0 {
			return 0, formatError("%s %s with %s %s", MetaType, name, MetaGroup, group)
		}
	}
	return t, nil
}
