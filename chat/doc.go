// Package chat renders a conversation to a prompt with the model's own chat template.
//
// A template is either Jinja, as published with checkpoints and rendered by package jinja, or a Go template, as in the
// TEMPLATE line of a Modelfile. Parse detects the language. Both are untrusted: time, output and memory are bounded.
// JSON objects keep the order of their keys from the request to the prompt, because models saw that order in training.
//
// There are no built-in prompt renderers for single model families: all supported families publish their templates.
package chat

import "errors"

// Errors that callers distinguish. Package jinja defines the errors of a template itself.
var (
	ErrNoTemplate = errors.New("the model has no chat template")
	// ErrOtherTemplates means that the model has templates, but none with the requested name.
	ErrOtherTemplates = errors.New("the model has other chat templates")
	ErrTemplate       = errors.New("chat template cannot be read")
	// ErrTools means that the tools of a request exceed a limit.
	ErrTools = errors.New("tools too large")
)
