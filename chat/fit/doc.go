// Package fit adapts a conversation to what a chat template accepts.
//
// Clients send conversations of any shape: system messages in the middle, two user turns in a row, calls without
// content, arguments that a token limit cut off. Templates accept what their model was trained with, and raise an
// exception for the rest, or leave it out.
//
// Contract:
//   - [Probe] finds out what a template accepts by rendering small conversations, never by a model's name. The result
//     is data, a [Shape].
//   - [Shape.Fit] changes a conversation only where the shape demands it. It moves, joins and splits messages, but
//     drops no text. The same conversation with one more message at its end begins alike, so that its prefix is cached.
//   - [Shape.Think] chooses the nearest level of thinking that the template has.
//   - It needs no tokenizer and no engine.
package fit
