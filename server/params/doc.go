// Package params has the parameters that several APIs accept: sampling options, the output format, thinking and how
// long a model stays loaded.
//
// Contract: a parameter that a request does not set has the model's default. [Options.Apply] checks what does not
// depend on the API. Each type reads its JSON forms itself and has a schema in [Schemas].
package params
