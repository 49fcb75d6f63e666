package cmd

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ingotml/ingot/cmd/terminal"
)

// table prints rows in aligned columns. Cells may hold foreign text: each is cleaned and stays on one line, in files
// too, so that no cell looks like another row. It is printed by flush.
type table struct{ w *tabwriter.Writer }

func newTable(to io.Writer) table { return table{tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)} }

func (t table) row(cells ...string) {
	line := make([]string, len(cells))
	for i, c := range cells {
		line[i] = terminal.Line(c)
	}
	fmt.Fprintln(t.w, strings.Join(line, "\t"))
}

func (t table) flush() error { return t.w.Flush() }

// short is the beginning of a digest's hexadecimal part.
func short(digest string) string {
	if _, hex, ok := strings.Cut(digest, ":"); ok {
		digest = hex
	}
	return fmt.Sprintf("%.12s", digest)
}
