// Package grammar compiles a JSON schema, a regular expression or an EBNF grammar and computes which tokens of a
// vocabulary may come next, so that generated text always parses.
//
// A [Grammar] is a program over bytes with calls for recursion. It is compiled once per source. A [Vocabulary] holds
// the bytes of each token in tries. It is built once per tokenizer. A [Matcher] follows one text while it is generated:
// Mask returns the tokens that may come next, Accept takes one, Forced returns the tokens that have no alternative, and
// Done reports whether the text may end.
//
// Contract:
//   - Without a budget, a token is in the mask exactly if Accept takes it. Accept ignores budgets. For extremely
//     ambiguous grammars a mask may omit tokens to bound time and memory, but it always contains a way to complete
//     the text.
//   - Mask with a number of remaining tokens allows only tokens after which the text can be completed within the rest.
//     A text within its budget always has a next token or may end. If no text fits the budget, Matcher returns
//     ErrBudget.
//   - JSON is written as Python's json.dumps writes it: ", " and ": ", no other white space, properties in schema
//     order. Integers have at most 19 digits, numbers at most 32 characters. All text is valid UTF-8.
//   - Keywords and operators that a grammar cannot express are refused by name and location (ErrUnsupported), never
//     ignored. Malformed sources return ErrInvalid, sources beyond the limits ErrLimit.
//   - Grammar, Vocabulary and their caches are safe for concurrent use. A Matcher belongs to one goroutine. Limits on
//     the program and the caches bound memory.
//
// The sources are read below: grammar/schema, grammar/ebnf and grammar/regex compile each to an expression
// (grammar/expr; grammar/jsontext has JSON's). grammar/program compiles it to a program, and grammar/automaton runs
// that over a vocabulary.
package grammar
