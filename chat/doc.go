// Package chat turns a conversation into the text that a model was trained to continue, by the model's own chat template.
//
// A template is Jinja, as published with checkpoints (package jinja renders it), or a Go template, as in the TEMPLATE line of
// a Modelfile; Parse tells which. Both are untrusted and bounded in time, output and memory. Values keep the order of their
// keys from the JSON of a request to the text of the prompt, because models saw that order when they were trained.
//
// Prompt renderers of our own for single families are not needed: the families that this program runs publish their templates.
package chat

import "errors"

// Errors that a caller may want to tell apart; those of a template itself are package jinja's.
var (
	ErrNoTemplate = errors.New("the model has no chat template")
	// ErrOtherTemplates says that a model has templates, but none of the wanted name.
	ErrOtherTemplates = errors.New("the model has other chat templates")
	ErrTemplate       = errors.New("chat template cannot be read")
	// ErrTools says that the tools of a request are beyond the limits.
	ErrTools = errors.New("too large tools")
)
