// Package lark compiles grammars in the variant of Lark's syntax that LLGuidance reads to expressions over bytes.
//
// The syntax is that of https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md. As there, a text is split
// into the longest lexemes that may stand at a place (literals, regular expressions and terminals), lazy ones end where
// they first can, and what %ignore names may stand between two lexemes.
//
// Contract: errors name the line. What the syntax has and this package does not (templates, priorities, parameters,
// %lark, references to other grammars, stop, max_tokens, temperature) is ErrUnsupported by name.
package lark
