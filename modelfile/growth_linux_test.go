package modelfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// The work of reading a Modelfile grows as its text does, however long its lines are.
func TestGrowth(t *testing.T) {
	for name, unit := range map[string]string{
		"a line": "x", "words": "a b ", "wide characters": "é", "lines": "a\n", "quotes": `"`, "returns": "\r", "blanks": " ",
	} {
		for _, form := range []string{"FROM x\nLICENSE %s\n", "FROM x\nLICENSE \"\"\"%s\"\"\"\n", "FROM x\nSYSTEM \"%s\"\n",
			"%s"} {
			runtest.Linear(t, 20_000, func(n int) func() {
				text := fmt.Sprintf(form, strings.Repeat(unit, n/len(unit)))
				return func() {
					if f, err := Parse(name, []byte(text)); err == nil {
						_, _ = f.Format()
					}
				}
			})
		}
	}
}
