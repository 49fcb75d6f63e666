package cli

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// Size formats a number of bytes for people, in powers of ten.
func Size(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/1000, "kB"
	for _, u := range []string{"MB", "GB", "TB"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1000, u
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

// Count formats a number of parameters for people.
func Count(n int64) string {
	for _, u := range []struct {
		unit string
		of   float64
	}{{"T", 1e12}, {"B", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if float64(n) >= u.of {
			return fmt.Sprintf("%.3g%s", float64(n)/u.of, u.unit)
		}
	}
	return fmt.Sprint(n)
}

// Shape formats the shape of a tensor.
func Shape(dims []int64) string {
	parts := make([]string, len(dims))
	for i, d := range dims {
		parts[i] = fmt.Sprint(d)
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// Short returns the first 12 hexadecimal digits of a digest.
func Short(digest string) string {
	if _, hex, ok := strings.Cut(digest, ":"); ok {
		digest = hex
	}
	return fmt.Sprintf("%.12s", digest)
}

// Excerpt returns the text as one sanitized line, cut after most characters.
func Excerpt(s string, most int) string { return terminal.Line(clip.Line(s, most)) }
