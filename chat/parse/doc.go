// Package parse splits a model's output into content, thinking and tool calls.
//
// A [Parser] reads streamed text and yields [Event]s in the order of the text. A format defines how a family of models
// writes thinking and tool calls. [New] finds it by name; [Detect] recognizes it from a chat template.
//
// Contract:
//   - The events do not depend on how the text is split into pieces, even within a character, once adjacent text events
//     are merged (see [Merge]). Text of an event is never split within a character.
//   - No text is lost, except tags and the white space around them. A malformed call becomes a [Damaged] event with its
//     text. White space that may precede a tag is held back until the next character.
//   - A call is emitted when it is complete, never in parts. [Options.MaxCall] bounds the buffered text; a longer call
//     is damaged.
//   - Time is linear in the length of the text.
package parse
