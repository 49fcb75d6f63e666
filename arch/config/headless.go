package config

import (
	"strings"
)

// Classes of a model without its output head end in BaseClass or, inside a multimodal family, in TextClass. Classes
// with a head end in one of HeadClasses.
const (
	BaseClass = "Model"
	TextClass = "TextModel"
)

var HeadClasses = []string{"ForCausalLM", "ForConditionalGeneration", "LMHeadModel"}

// CutClass returns the name that the classes of one model share; ok is false if the class has no output head.
func CutClass(class string) (stem string, ok bool) {
	for _, end := range HeadClasses {
		if stem, ok := strings.CutSuffix(class, end); ok {
			return stem, true
		}
	}
	return "", false
}

// IsBaseClass reports whether the name of a class is one without an output head.
func IsBaseClass(class string) bool {
	_, head := CutClass(class)
	return strings.HasSuffix(class, BaseClass) && !head
}
