package cli

import (
	"testing"

	"github.com/ingotml/ingot/cmd/terminal"
)

func TestCut(t *testing.T) {
	for _, test := range []struct {
		text    string
		columns int
		want    string
	}{
		{"short", 5, "short"},
		{"model.layers.12.weight", 12, "mod...weight"},
		{"abc", 2, ".."},
		{"abc", 0, ""},
		{"模型模型模型", 8, "模..模型"},
	} {
		if got := Cut(test.text, test.columns); got != test.want || terminal.Columns(got) > max(test.columns, 0) {
			t.Errorf("cut(%q, %d) = %q, want %q", test.text, test.columns, got, test.want)
		}
	}
}

// A terminal that became narrower has wrapped its lines.
func TestRows(t *testing.T) {
	if got := (&Screen{drawn: []int{45, 0, 20}}).rows(20); got != 5 {
		t.Errorf("three lines of 45, 0 and 20 columns take %d rows of 20, want 5", got)
	}
}
