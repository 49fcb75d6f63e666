package bridge

import (
	"os"
	"regexp"
	"testing"
)

// Every kernel of rows and recurrent layers runs beside guard pages, see test/rows.cc. Those of products and attention
// are reached through their drivers.
func TestKernelsAreGuarded(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	guard := read("test/rows.cc")
	member := regexp.MustCompile(`\(\*(\w+)(?:\[\w+\])*\)\(`)
	for _, header := range []string{"src/cpu/rows/rows.h", "src/cpu/delta/delta.h"} {
		kernels := member.FindAllStringSubmatch(read(header), -1)
		if len(kernels) == 0 {
			t.Errorf("%s has no kernels", header)
		}
		for _, k := range kernels {
			if !regexp.MustCompile(`k\.` + k[1] + `\b`).MatchString(guard) {
				t.Errorf("%s: the kernel %s is not in test/rows.cc", header, k[1])
			}
		}
	}
}
