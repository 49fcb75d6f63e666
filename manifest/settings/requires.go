package settings

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

var versionPattern = regexp.MustCompile(`^v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(?:[-+].*)?$`)

// CheckRequires returns an error if a model requires a later version of the program.
func (r Record) CheckRequires(model, version string) error {
	if late, _ := Later(r.Requires, version); late {
		return fmt.Errorf("%s requires ingot %s, and this is %s: update it", model, r.Requires, version)
	}
	return nil
}

// Later reports whether version a is later than b, and whether both are versions.
func Later(a, b string) (late, known bool) {
	x, y := versionPattern.FindStringSubmatch(a), versionPattern.FindStringSubmatch(b)
	if x == nil || y == nil {
		return false, false
	}
	for i := 1; i < len(x); i++ {
		if d := compareNumbers(x[i], y[i]); d != 0 {
			return d > 0, true
		}
	}
	return false, true
}

// compareNumbers compares decimal numbers of any length.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
