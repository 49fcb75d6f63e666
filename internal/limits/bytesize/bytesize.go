// Package bytesize reads sizes that people write, such as 16MiB.
package bytesize

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
)

// units are the endings of a size. Those without an i and a b are powers of two too.
var units = []struct {
	ending string
	of     float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9},
	{"tb", 1e12}, {"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40}, {"b", 1},
}

// Parse reads a positive number of bytes, with or without a unit, in any case.
func Parse(s string) (int64, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	unit := 1.0
	for _, u := range units {
		if number, ok := strings.CutSuffix(text, u.ending); ok {
			text, unit = strings.TrimSpace(number), u.of
			break
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0) || n*unit > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is not a size; use one such as 1GiB", clip.Line(s, 60))
	}
	return int64(n * unit), nil
}
