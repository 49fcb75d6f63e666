package tokenizer

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestSamples is the long comparison with the reference, for development: the committed goldens are a small part of it.
func TestSamples(t *testing.T) {
	if *samples == "" {
		t.Skip("no -samples NAME=FILE, which testdata/gen/tokenizer_fixtures.py sample prints; needs the reference library")
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
