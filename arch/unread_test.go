package arch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
)

// TestUnreadOfManyKeys checks that a configuration with very many keys, or with long values, takes few readings.
func TestUnreadOfManyKeys(t *testing.T) {
	many := func(n int, value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d":%s`, i, value)
		}
		return b.String()
	}
	for what, more := range map[string]string{
		"nothing": many(20_000, "0"), "numbers": many(20_000, "1"), "texts": many(20, `"`+strings.Repeat("x", 1<<18)+`"`),
	} {
		config := []byte("{" + base + more + `,"odd_norm_epsilon":1}`)
		m, err := arch.Detect(config)
		if err != nil {
			t.Fatal(err)
		}
		readings := 0
		a := arch.Watched(arch.ByName("llama"), func(config []byte) { readings += len(config) })
		got := arch.UnreadOf(config, a, m)
		if readings > 60*len(config) {
			t.Errorf("%s: %d bytes are read of a configuration of %d", what, readings, len(config))
		}
		if !slices.Contains(got, "odd_norm_epsilon") {
			t.Errorf("%s: %.200q", what, got)
		}
	}
}
