package value

import (
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
)

func TestDecodeJSONNesting(t *testing.T) {
	for open, end := range map[string]string{"[": "]", `{"a":`: "}"} {
		deep := func(levels int) []byte {
			return []byte(strings.Repeat(open, levels) + "1" + strings.Repeat(end, levels))
		}
		const most = limits.TemplateJSONNesting + 1 // the outermost value, and values in it
		if _, err := DecodeJSON(deep(most)); err != nil {
			t.Errorf("%s at the limit: %v", open, err)
		}
		_, err := DecodeJSON(deep(most + 1))
		if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "nested too deeply") {
			t.Errorf("%s beyond the limit: %v", open, err)
		}
	}
}

// BenchmarkDecodeJSON decodes the schemas of 64 tools.
func BenchmarkDecodeJSON(b *testing.B) {
	const tool = `{"type":"function","function":{"name":"get_weather","description":"The weather of a place.\nIn C.",` +
		`"parameters":{"type":"object","properties":{"place":{"type":"string","description":"Name of the place"},` +
		`"days":{"type":"integer","minimum":1,"maximum":14,"default":1.5e0}},"required":["place"]}}}`
	text := []byte("[" + strings.Repeat(tool+", ", 63) + tool + "]")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeJSON(text); err != nil {
			b.Fatal(err)
		}
	}
}
