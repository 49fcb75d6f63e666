package cmd

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ingotml/ingot/cmd/terminal"
)

// table prints rows in aligned columns; flush prints them. Cells may contain untrusted text: each is sanitized and
// stays on one line, also in files, so that no cell looks like another row.
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

// short returns the first 12 hexadecimal digits of a digest.
func short(digest string) string {
	if _, hex, ok := strings.Cut(digest, ":"); ok {
		digest = hex
	}
	return fmt.Sprintf("%.12s", digest)
}
