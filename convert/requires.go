package convert

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/ingotml/ingot/modelfile"
)

var numbers = regexp.MustCompile(`^v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(?:[-+].*)?$`)

// checkVersion refuses a Modelfile that needs a later version of the program. A build without a version cannot tell.
func checkVersion(file *modelfile.File, c modelfile.Command, version string) (warning []string, err error) {
	want, have := numbers.FindStringSubmatch(c.Value), numbers.FindStringSubmatch(version)
	switch {
	case want == nil:
		return nil, file.Errorf(c, "REQUIRES needs a version such as 0.19.0")
	case have == nil:
		return []string{file.Errorf(c, "this build of ingot has no version to compare with").Error()}, nil
	}
	for i := 1; i < len(want); i++ {
		switch d := compareNumbers(want[i], have[i]); {
		case d > 0:
			return nil, file.Errorf(c, "this is ingot %s: update it, or remove the line if another program is meant", version)
		case d < 0:
			return nil, nil
		}
	}
	return nil, nil
}

// compareNumbers compares decimal numbers of any length.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
