package convert

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/ingotml/ingot/modelfile"
)

var versionPattern = regexp.MustCompile(`^v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(?:[-+].*)?$`)

// checkVersion rejects a Modelfile that requires a later version of the program. A build without a version only warns.
func checkVersion(file *modelfile.File, c modelfile.Command, version string) (warning []string, err error) {
	late, known := later(c.Value, version)
	switch {
	case !known:
		return []string{file.Errorf(c, "this build of ingot has no version to compare with").Error()}, nil
	case late:
		return nil, file.Errorf(c, "this is ingot %s: update it, or remove the line if another program is meant", version)
	}
	return nil, nil
}

// checkBase rejects a source image that requires a later version.
func (inv *Inventory) checkBase(version string) error {
	return inv.base.CheckRequires(inv.From, version)
}

// CheckRequires returns an error if a model requires a later version of the program.
func (r Record) CheckRequires(model, version string) error {
	if late, _ := later(r.Requires, version); late {
		return fmt.Errorf("%s requires ingot %s, and this is %s: update it", model, r.Requires, version)
	}
	return nil
}

// later reports whether version a is later than b, and whether both are versions.
func later(a, b string) (late, known bool) {
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
