package chat

import (
	_ "embed"
)

// The texts of these templates are those that the models are trained on.
var (
	//go:embed templates/deepseek3.2.jinja
	deepseek32 string
	//go:embed templates/deepseek4.jinja
	deepseek4 string
)

// BuiltIn returns the template of models that are published without one, by the name of their format in package parse;
// "" = there is none.
func BuiltIn(format string) string {
	switch format {
	case "deepseek3.2":
		return deepseek32
	case "deepseek4":
		return deepseek4
	}
	return ""
}
