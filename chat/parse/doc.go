// Package parse splits a model's output into content, thinking and tool calls.
//
// A [Parser] reads streamed text and yields [Event]s in the order of the text. A format defines how a family of models
// writes thinking and tool calls. [New] finds it by name; [Detect] recognizes it from a chat template.
//
// Contract:
//   - The events do not depend on how the text is split into pieces, even within a character, once adjacent text events
//     are merged (see [Merge]). Text of an event is never split within a character.
//   - No text is lost: every byte that is not of a tag, or white space next to one, is in an event, in a call's name or
//     in its arguments. Exceptions are what a call writes twice, and members of a JSON call that no format has. White
//     space that may precede a tag is held back until the next character.
//   - Texts of a kind that only dropped tags separate do not run together: white space is between them.
//   - A tag is text where it is quoted, or where what follows is no call. Text that seemed to be a call is then parsed
//     again, in the state in which the call began. In thinking, and in code fences, only offered tools can be called.
//   - A malformed call in the content becomes a [Damaged] event with its text, or, where its end is unknown, with its
//     opening tag.
//   - A call is emitted when it is complete, never in parts. [Options.MaxCall] bounds the buffered text; a longer call
//     is damaged.
//   - Without tools there are no calls: all output is content or thinking.
//   - Time is linear in the length of the text.
package parse
