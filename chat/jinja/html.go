package jinja

import (
	"html"
	"strings"
)

var htmlEscapes = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

func escapeHTML(s string) string { return htmlEscapes.Replace(s) }

// escapeValue is markupsafe.escape.
func (r *run) escapeValue(v Value) (Markup, error) {
	if m, ok := v.(Markup); ok {
		return m, nil
	}
	s, err := r.str(v)
	if err != nil {
		return "", err
	}
	s = escapeHTML(s)
	return Markup(s), r.alloc(len(s))
}

// markup returns Markup(v), without escaping.
func (r *run) markup(v Value) (Value, error) {
	s, err := r.str(v)
	return Markup(s), err
}

// stripTags removes tags and comments, collapses white space and decodes entities.
func stripTags(s string) string {
	var b strings.Builder
	for {
		start := strings.IndexByte(s, '<')
		if start < 0 {
			break
		}
		from, end := start, ">"
		if strings.HasPrefix(s[start:], "<!--") {
			from, end = start+4, "-->"
		}
		at := strings.Index(s[from:], end)
		if at < 0 {
			break
		}
		b.WriteString(s[:start])
		s = s[from+at+len(end):]
	}
	b.WriteString(s)
	return html.UnescapeString(strings.Join(splitSpace(b.String(), -1), " "))
}
