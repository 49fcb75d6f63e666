package tokenizer

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestSamples is the full comparison with the reference, for development. The committed goldens are a small part of it.
func TestSamples(t *testing.T) {
	if *samples == "" {
		t.Skip("needs -samples NAME=FILE with the output of testdata/gen/tokenizers/trained.py sample NAME")
	}
	name, path, _ := strings.Cut(*samples, "=")
	tok := loadFixture(t, name)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	n := 0
	for ; lines.Scan(); n++ {
		var c struct {
			encodeCase
			Decode []decodeCase `json:"decode"`
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		checkEncode(t, tok, c.encodeCase)
		for _, d := range c.Decode {
			checkDecode(t, tok, d)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d texts", name, n)
}
