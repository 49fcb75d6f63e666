// Package prompt converts between conversations and a model's text: it builds a prompt from messages with the model's
// chat template, and parses generated text into content, thinking and tool calls.
//
// The command line and all APIs of the server use it, so that a conversation gives the same prompt everywhere and its
// prefix cache entries are shared.
//
// Contract:
//   - It needs no engine.
//   - [Style.Begin] renders the template and tokenizes the result once. Further responses to the same prompt share it:
//     [Prompt.Again].
//   - What a conversation begins with (the image's system message and messages) is decided here: see
//     [Style.WithImageMessages].
//   - Rendering and tokenizing take memory from a [Budget] and are bounded by package limits.
package prompt
