// Package parse takes apart what a model says: the answer, its thinking, and its calls of tools.
//
// A [Parser] reads text as it comes and yields [Event]s in the order of the text. How a family of models writes its
// thinking and its calls is a format; [New] finds it by its name, [Detect] by what a chat template shows.
//
// Contract:
//   - However the text is cut into pieces, even between the bytes of a character, the events are the same, once adjacent
//     ones of text are joined. Text of an event is never cut inside a character.
//   - No text is lost, save tags and the white space around them. A call that cannot be read comes out as a [Damaged]
//     event with its text. White space that may stand before a tag is held back until the next character.
//   - A call comes out when it is complete, never in parts. What is held is bounded by [Options.MaxCall]; a longer call is
//     damaged.
//   - Time is linear in the length of the text.
package parse
