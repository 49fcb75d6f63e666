package redact

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
)

// HeaderSecrets lists the parts of an Authorization header to redact.
func HeaderSecrets(header string) []string {
	_, value, _ := strings.Cut(header, " ")
	list := []string{header, value}
	if b, err := base64.StdEncoding.DecodeString(value); err == nil {
		_, password, _ := strings.Cut(string(b), ":")
		list = append(list, string(b), password)
	}
	return list
}

// minSecret is the shortest query value that is redacted. Shorter ones are no secrets, and may be words of an error
// message.
const minSecret = 8

// plainParameters are query parameters of the specifications that hold no secret and may appear in errors.
var plainParameters = []string{
	"account", "artifactType", "client_id", "digest", "from", "last", "mount", "n", "scope", "service",
}

// URLSecrets lists the parts of a URL to redact: userinfo, and query values, which may be signatures.
func URLSecrets(u *url.URL) []string {
	list := []string{u.User.String()}
	if len(u.RawQuery) >= minSecret {
		list = append(list, u.RawQuery)
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if len(value) < minSecret || slices.Contains(plainParameters, key) {
			continue
		}
		list = append(list, value)
		if plain, err := url.QueryUnescape(value); err == nil && plain != value {
			list = append(list, plain)
		}
	}
	return list
}

// Secrets removes secrets from foreign text, which may quote them.
func Secrets(text string, secrets ...string) string {
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[hidden]")
		}
	}
	return text
}

// DisplayURL formats a URL without userinfo and query, which may hold signatures and upload state.
func DisplayURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

var addressPattern = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`)

// URLs strips userinfo, query and fragment from the URLs in a text.
func URLs(text string) string {
	return addressPattern.ReplaceAllStringFunc(text, func(address string) string {
		address, _, _ = strings.Cut(address, "?")
		address, _, _ = strings.Cut(address, "#")
		scheme, rest, _ := strings.Cut(address, "://")
		host, path := rest, ""
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			host, path = rest[:i], rest[i:]
		}
		return scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + path
	})
}

// Clip shortens foreign text to one line of 200 characters, without control characters and with its URLs redacted.
func Clip(s string) string {
	s = URLs(s)
	s = strings.Join(strings.Fields(s), " ")
	return clip.Text(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return -1
		}
		return r
	}, s), 200)
}
