// Package chat renders a conversation to a prompt with the model's own chat template.
//
// A template is either Jinja, as published with checkpoints and rendered by package jinja, or a Go template, as in the
// TEMPLATE line of a Modelfile. Parse detects the language. Both are untrusted: time, output and memory are bounded.
// JSON objects keep the order of their keys from the request to the prompt, because models saw that order in training.
//
// There are no built-in prompt renderers for single model families: all supported families publish their templates.
package chat

import (
	"errors"

	"github.com/ingotml/ingot/internal/limits/fault"
)

// Errors that callers distinguish. Package jinja defines the errors of a template itself.
var (
	ErrNoTemplate = fault.Register(errors.New("the model has no chat template"), fault.Kind{
		Name: "chat.ErrNoTemplate", Means: "the model has no chat template",
		Rank: fault.Request + 4, Status: fault.Invalid,
	})
	// ErrOtherTemplates means that the model has templates, but none with the requested name.
	ErrOtherTemplates = errors.New("the model has other chat templates")
	ErrTemplate       = errors.New("chat template cannot be read")
	// ErrTools means that the tools of a request exceed a limit.
	ErrTools = fault.Register(errors.New("tools too large"), fault.Kind{
		Name: "chat.ErrTools", Means: "the tools of a request exceed a limit",
		Rank: fault.Request + 5, Status: fault.Invalid,
	})
)
