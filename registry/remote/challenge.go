package remote

import (
	"net/http"
	"strings"
)

// offer is what a registry accepts, by the challenges of a 401 response.
type offer struct {
	bearer map[string]string // parameters of the challenge for tokens; nil: none are accepted
	basic  bool              // passwords
}

// offerOf returns the first challenge of each supported scheme in a response's WWW-Authenticate headers, or nil.
func offerOf(header http.Header) *offer {
	var o offer
	for _, value := range header.Values("WWW-Authenticate") {
		for _, ch := range parseChallenges(value) {
			switch {
			case ch.scheme == "bearer" && o.bearer == nil:
				o.bearer = ch.parameters
			case ch.scheme == "basic":
				o.basic = true
			}
		}
	}
	if o.bearer == nil && !o.basic {
		return nil
	}
	return &o
}

// challenge is one challenge of a WWW-Authenticate header. Scheme and names of parameters are in lower case.
type challenge struct {
	scheme     string
	parameters map[string]string
}

// parseChallenges parses a WWW-Authenticate header (RFC 9110, section 11.6.1). It has no errors: what it does not
// understand becomes a challenge of an unknown scheme. A comma in a value without quotes does not end a challenge.
func parseChallenges(s string) []challenge {
	var list []challenge
	current := -1 // index of the challenge that parameters belong to
	for {
		s = strings.TrimLeft(s, " \t,")
		if s == "" {
			return list
		}
		word := untilAny(s, " \t,=\"")
		s = s[len(word):]
		rest := strings.TrimLeft(s, " \t")
		switch {
		case strings.HasPrefix(rest, "="):
			var value string
			value, s = parameterValue(strings.TrimLeft(rest[1:], " \t"))
			if current >= 0 {
				list[current].parameters[strings.ToLower(word)] = value
			}
		case word == "":
			s = s[1:] // a quote where none belongs
		default:
			list = append(list, challenge{strings.ToLower(word), map[string]string{}})
			if current < 0 || !strings.HasPrefix(rest, ",") {
				current = len(list) - 1
			}
		}
	}
}

// parameterValue returns the value at the beginning of s, without its quotes, and the rest.
func parameterValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		value = untilAny(s, " \t,")
		return value, s[len(value):]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

// untilAny returns s up to the first of these characters.
func untilAny(s, chars string) string {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i]
	}
	return s
}
