package gguf

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/config"
)

// Compare compares a model with what its file means: another model is an error wrapping [ErrMetadata]. lost are
// differences that leave contexts up to a length the same, for users.
func (g Map) Compare(m, back Model) (lost []string, err error) {
	compare := comparison{dim: config.CommonOf(m).HeadDim}
	compare.add("", reflect.Indirect(reflect.ValueOf(m)), reflect.Indirect(reflect.ValueOf(back)))
	list := compare.differences
	window, _ := Field[int](m, "Window")
	if got, _ := Field[int](back, "Window"); (got == 0 || g.Limits.NoWindow) && window > 0 {
		lost = append(lost, fmt.Sprintf("the sliding window of %d positions: contexts up to it are the same", window))
		list = slices.DeleteFunc(list, func(d string) bool {
			return strings.HasPrefix(d, "Window ") || strings.HasPrefix(d, "Sliding ")
		})
	}
	if r, _ := Field[config.Rope](m, "Rope"); r.Type == config.RopeYarn && !r.Truncate {
		lost = append(lost, "that the bounds of yarn's ramp are not rounded: llama.cpp rounds them")
	}
	if d, _ := Field[config.SSM](m, "SSM"); d.MinStep > 0 {
		lost = append(lost, fmt.Sprintf("that steps of Mamba layers are at least %v: llama.cpp has no limits", d.MinStep))
	}
	if width, _ := Field[int](m, "Intermediate"); width == 0 { // of dense layers, which there are none of
		list = slices.DeleteFunc(list, func(d string) bool { return strings.HasPrefix(d, "Intermediate ") })
	}
	list = slices.DeleteFunc(list, func(d string) bool {
		if strings.HasPrefix(d, "Latent.Eps ") {
			lost = append(lost, d)
			return true
		}
		return false
	})
	if len(list) > 0 {
		return nil, fmt.Errorf("%w: llama.cpp's %s cannot be this model: %s", ErrMetadata, g.Architecture,
			strings.Join(list, "; "))
	}
	return lost, nil
}

// outside are fields that do not determine what the text model computes.
var outside = []string{
	"Architecture", "DType", "BOS", "EOS", "Prefix", "Vision", "ImageToken", "VideoToken", "VisionStart", "VisionEnd",
	"NextLayers", "NextWindow", "MTP", "Unified", "Float32", "PerLayerVocab",
}

// comparison lists differences of two models.
type comparison struct {
	dim         int // of a head
	differences []string
}

// add compares the fields of a, which have the path, with those of b.
func (c *comparison) add(path string, a, b reflect.Value) {
	if r, ok := a.Interface().(config.Rope); ok && r.Same(b.Interface().(config.Rope), c.dim) {
		return
	}
	if a.Kind() == reflect.Struct && (a.Type() == b.Type() || path == "") {
		for i := range a.NumField() {
			field := a.Type().Field(i)
			if slices.Contains(outside, field.Name) {
				continue
			}
			name := path + field.Name + "."
			if field.Anonymous {
				name = path
			}
			other := b.FieldByName(field.Name)
			if !other.IsValid() {
				other = reflect.Zero(field.Type)
			}
			c.add(name, a.Field(i), other)
		}
		return
	}
	x, y := a.Interface(), b.Interface()
	same := reflect.DeepEqual(x, y)
	if p, ok := x.(float64); ok {
		same = math.Abs(p-y.(float64)) <= 1e-6*math.Abs(p)
	}
	if a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0 {
		same = true
	}
	if !same {
		c.differences = append(c.differences, fmt.Sprintf(
			"%s is %v there, and %v in the model", strings.TrimSuffix(path, "."), y, x))
	}
}
