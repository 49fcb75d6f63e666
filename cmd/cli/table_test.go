package cli

import (
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/terminal"
)

func TestTable(t *testing.T) {
	rows := [][]string{
		{"TENSOR", "SHAPE", "RULE"},
		{"model.layers.0.mlp.down_proj.weight", "[64 96]", "int8: more bits in the first eighth"},
		{"  lm_head.weight", "[384 64]", ""},
		{"A row of one cell that is wider than its column"},
	}
	for _, c := range []struct {
		columns int
		want    string
	}{
		{0, "" +
			"TENSOR                               SHAPE     RULE\n" +
			"model.layers.0.mlp.down_proj.weight  [64 96]   int8: more bits in the first eighth\n" +
			"  lm_head.weight                     [384 64]  \n" +
			"A row of one cell that is wider than its column\n"},
		{45, "" +
			"TENSOR             SHAPE     RULE\n" +
			"model.layers.0.    [64 96]   int8: more bits\n" +
			"mlp.down_proj.               in the first\n" +
			"weight                       eighth\n" +
			"  lm_head.weight   [384 64]  \n" +
			"A row of one cell that is wider than its\n" +
			"column\n"},
	} {
		if got := tableText(rows, c.columns); got != c.want {
			t.Errorf("%d columns:\n%s\nwant:\n%s", c.columns, got, c.want)
		}
	}
}

// A digest in the last column stays whole.
func TestTableKeepsWords(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	want := "name    a\ndigest  " + digest + "\nfiles   one, two,\n        three\n"
	rows := [][]string{{"name", "a"}, {"digest", digest}, {"files", "one, two, three"}}
	if got := tableText(rows, 20); got != want {
		t.Errorf("%s\nwant:\n%s", got, want)
	}
}

// A table never exceeds the terminal's width as long as its columns can be narrowed, and loses no text.
func TestTableFits(t *testing.T) {
	rows := [][]string{
		{"NAME", "DIGEST", "SIZE", "TYPE"},
		{strings.Repeat("a", 90), "0123456789ab", "98.2 MB", "\u6f22\u5b57 \u6f22\u5b57 \u6f22\u5b57 \u6f22\u5b57"},
		{"  registry.example.com/team/first:v1", "0123456789ab", "1 kB", "llama, mixed, and a third"},
		{"", "", "", ""},
		{"one"},
	}
	letters := func(s string) map[rune]int {
		n := map[rune]int{}
		for _, r := range s {
			if r != ' ' && r != '\n' {
				n[r]++
			}
		}
		return n
	}
	all := letters(tableText(rows, 0))
	for columns := 4*minColumn + 3*columnGap; columns < 200; columns++ {
		text := tableText(rows, columns)
		for line := range strings.Lines(text) {
			if n := terminal.Columns(strings.TrimSuffix(line, "\n")); n > columns {
				t.Fatalf("%d columns: a line of %d:\n%s", columns, n, text)
			}
		}
		for r, n := range letters(text) {
			if all[r] != n {
				t.Fatalf("%d columns: %d of %q, want %d:\n%s", columns, n, r, all[r], text)
			}
		}
	}
}
