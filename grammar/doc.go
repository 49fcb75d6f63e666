// Package grammar turns a JSON schema, a regular expression or an EBNF into masks over a model's vocabulary, so that what
// the model writes parses.
//
// A [Grammar] is a program over bytes with calls for what recurs; it is compiled once per source. A [Vocabulary] is the bytes
// of each token in a trie, made once per tokenizer. A [Matcher] is one text that is being written: Mask says which tokens may
// come next, Accept takes one, Forced tells what has no alternative, Done whether the text may end.
//
// Contract:
//   - A token is in the mask exactly if Accept takes it, but for budgets, which are Mask's alone.
//   - Mask with so many tokens remaining lets only those through after which the text can still be completed with the rest.
//     A text within its budget always has a next token or may end. A budget that nothing fits is ErrBudget at the start.
//   - JSON is written as Python's json.dumps writes it: ", " and ": " and no other white space, properties in the order of the
//     schema. Integers have at most 19 digits and numbers 32 characters. All text is valid UTF-8.
//   - What a keyword or an operator needs and a grammar cannot hold is refused by name and place (ErrUnsupported), never
//     ignored. Sources that are not well-formed are ErrInvalid, those beyond the limits ErrLimit.
//   - Grammar, Vocabulary and what they cache are safe for concurrent use; a Matcher belongs to one goroutine. Memory is
//     bounded by limits on the program and on the caches.
//
// The automaton is determinised as it is met: a state is a set of places in the program, each with its stack of returns, and
// equal stacks are one value. Most of a stack never matters to a token, so masks are first made for stacks cut short; what such
// a mask cannot decide is walked with the whole stack.
package grammar
