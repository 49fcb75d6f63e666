package calls

import (
	"regexp"
	"slices"
	"strings"
)

// EBNF notation.

// jsonSign introduces a JSON schema.
const jsonSign = "%json "

func Seq(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" || s == `""` }), " ")
}

func group(s string) string { return "(" + s + ")" }

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// Literal returns a quoted terminal.
func Literal(s string) string { return `"` + escapes.Replace(s) + `"` }

var classEscapes = regexp.MustCompile(`[\\\]\[^-]`)

// Without returns the rule of any text that does not contain tag. The first character of tag must occur in it only
// once. Such a text consists of characters that do not begin the tag, and of proper prefixes of the tag. A prefix ends
// before another prefix, before a character that does not continue it, or at the end of the text.
func Without(tag string) string {
	class := func(chars string) string { return "[^" + classEscapes.ReplaceAllString(chars, `\$0`) + "]" }
	runes := []rune(tag)
	first, last := string(runes[0]), len(runes)-1
	begun := ""                                  // rest of a prefix, from its second character
	broken := class(first + string(runes[last])) // rest of a prefix, and a character that does not continue it
	for i := last - 1; i > 0; i-- {
		r := string(runes[i])
		broken = group(class(first+r) + " | " + Literal(r) + " " + broken)
		begun = group(Seq(Literal(r), begun)) + "?"
	}
	beginnings := group(Seq(Literal(first), begun)) + "*"
	return group(class(first)+" | "+Seq(beginnings, Literal(first), broken)) + "* " + beginnings
}

func optional(s string) string { return group(s) + "?" }
