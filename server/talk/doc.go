// Package talk converts between conversations and a model's text: it builds a prompt from messages with the model's
// chat template, and parses generated text into content, thinking and tool calls.
//
// It needs no engine. The command line and all APIs of the server use it, so that a conversation gives the same prompt
// everywhere and its prefix cache entries are shared.
package talk
