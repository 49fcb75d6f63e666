package pattern

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/chars"
)

// GPT2 is the pattern of ByteLevel (pre_tokenizers/byte_level.rs of the reference).
const GPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// scanner runs a split pattern without a regular expression engine. The published patterns are alternations of a few
// parts that are tried in order at each position. Each part is a function here, so the scanner supports every
// combination of them. Tests compare each part with the general engine and the reference.
type scanner struct {
	parts []scanPart
	first [utf8.RuneSelf][]scanPart // the parts that can match where this byte is next
}

// scanPart returns the end of its match at i, or -1. It may look at all of the text from i on. i is less than its
// length.
type scanPart func(x *search, i int) int

// Classes of characters in the table below.
const (
	letter   = chars.ClassLetter
	mark     = chars.ClassMark
	number   = chars.ClassNumber
	space    = chars.ClassSpace
	punct    = chars.ClassPunct
	symbol   = chars.ClassSymbol
	anything = chars.ClassAll
)

// scanParts maps the pattern of each part to its function.
var scanParts = map[string]scanPart{
	`'s|'t|'re|'ve|'m|'ll|'d`:                                   contraction(sameCase),
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)`:                              contraction(anyCase),
	`'(?i:[sdmt]|ll|ve|re)`:                                     contraction(anyCase),
	`(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])`: contraction(asciiCase),
	` ?\p{L}+`:                                            spaced(letter, ""),
	` ?[\p{L}\p{M}]+`:                                     spaced(letter|mark, ""),
	` ?\p{N}+`:                                            spaced(number, ""),
	` ?[^\s\p{L}\p{N}]+`:                                  spaced(anything&^(space|letter|number), ""),
	` ?[^\s\p{L}\p{N}\r\n]+`:                              spaced(anything&^(space|letter|number), ""),
	` ?[^\s\p{L}\p{N}]+[\r\n]*`:                           spaced(anything&^(space|letter|number), "\r\n"),
	` ?[^\s\p{L}\p{N}]++[\r\n]*`:                          spaced(anything&^(space|letter|number), "\r\n"),
	` ?[^\s\p{L}\p{N}]+[\r\n/]*`:                          spaced(anything&^(space|letter|number), "\r\n/"),
	` ?[^\s\p{L}\p{N}]+[\r\n/]?`:                          spacedBefore(anything&^(space|letter|number), "\r\n/"),
	` ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*`:                      spaced(anything&^(space|letter|mark|number), "\r\n"),
	` ?[\p{P}\p{S}]+[\r\n]*`:                              spaced(punct|symbol, "\r\n"),
	`[^\r\n\p{L}\p{N}]?\p{L}+`:                            prefixed(letter|number, letter),
	`[^\r\n\p{L}\p{N}]?+\p{L}+`:                           prefixed(letter|number, letter),
	`[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+`:                     prefixed(letter|number, letter|mark),
	`[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+`:                prefixed(letter|punct|symbol, letter|mark),
	`[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+`: phrase,
	`\p{N}`:  upTo(1, number),
	`\p{N}+`: upTo(0, number),
	"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+": punctuatedASCII,
	`[一-龥぀-ゟ゠-ヿ]+`:                                          kana,
	camelLower + `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`:            withContraction(camel(true)),
	camelUpper + `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`:            withContraction(camel(false)),
	camelLower:  camel(true),
	camelUpper:  camel(false),
	lineBreaks:  spaceToLineBreak,
	`\s*[\r\n]`: spaceToLineBreak, // equivalent to the form with +: the greedy \s* makes both end at the last line break
	`\s+(?!\S)`: spaceBeforeSpace,
	anySpace:    upTo(0, space),
}

const (
	lineBreaks = `\s*[\r\n]+`
	anySpace   = `\s+`
	camelLower = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	camelUpper = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
)

// NewScanner returns a scanner if expr consists of known parts. Line breaks may be escaped or literal.
func NewScanner(expr string) (Pattern, bool) {
	if p, ok := newDigitBorders(expr); ok {
		return p, true
	}
	texts, parts, ok := cutParts(strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(expr))
	if !ok {
		return nil, false
	}
	// This part can fail after a long scan, and needs a later part that consumes the scanned text. Otherwise the scan
	// repeats at each character and takes quadratic time.
	for i, text := range texts {
		if strings.HasPrefix(text, camelLower) && !slices.ContainsFunc(texts[i:], func(t string) bool {
			return strings.HasPrefix(t, camelUpper)
		}) {
			return nil, false
		}
	}
	sc := &scanner{parts: parts}
	for b := range sc.first {
		for _, p := range sc.parts {
			if canStart(p, byte(b)) {
				sc.first[b] = append(sc.first[b], p)
			}
		}
	}
	return sc, true
}

// cutParts splits an alternation into known parts, preferring the longest.
func cutParts(expr string) (texts []string, parts []scanPart, ok bool) {
	for {
		best, n := ruled(expr)
		if n < len(expr) && expr[n] != '|' {
			best, n = nil, 0
		}
		for text, part := range scanParts {
			rest, ok := strings.CutPrefix(expr, text)
			if ok && len(text) > n && (rest == "" || rest[0] == '|') {
				best, n = part, len(text)
			}
		}
		if best == nil {
			return nil, nil, false
		}
		texts, parts = append(texts, expr[:n]), append(parts, best)
		if expr = expr[n:]; expr == "" {
			return texts, parts, true
		}
		expr = expr[1:]
	}
}

// longSpace is a text on which every part for white space can start.
var longSpace = strings.Repeat(" ", longestSpaces)

// canStart reports whether a part can match a text that starts with b. It tries texts that cover every kind of
// continuation.
func canStart(p scanPart, b byte) bool {
	for _, rest := range []string{"", "a", "A", "1", "!", " ", "\n", "s", "ll", "\u0301", "\u3042", longSpace} {
		if p(&search{t: chars.Characters(), s: string(rune(b)) + rest}, 0) > 0 {
			return true
		}
	}
	return false
}

// Matches implements [Pattern].
func (sc *scanner) Matches(m *work.Meter, s string, found func(start, end int) error) error {
	x := newSearch(s)
	defer x.done()
	for i := 0; i < len(s); {
		parts := sc.parts
		if c := s[i]; c < utf8.RuneSelf {
			parts = sc.first[c]
		}
		end := -1
		for _, p := range parts {
			if end = p(x, i); end >= 0 {
				break
			}
		}
		if err := m.Spend(x.read + 4*max(1, end-i)); err != nil {
			return err
		}
		x.read = 0
		if end < 0 {
			_, n := utf8.DecodeRuneInString(s[i:])
			i += n
			continue
		}
		if err := found(i, end); err != nil {
			return err
		}
		i = end
	}
	return nil
}
