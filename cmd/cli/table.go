package cli

import (
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/ingotml/ingot/cmd/terminal"
)

// Table prints rows in aligned columns; flush prints them. Cells may contain untrusted text: each is sanitized and
// stays on one line, also in files, so that no cell looks like another row. On a terminal that is too narrow, cells are
// broken into several lines within their column. In files and pipes, a row is always a line.
type Table struct {
	to   io.Writer
	rows *[][]string
}

// columnGap separates columns.
const columnGap = 2

// NewTable returns an empty table.
func NewTable(to io.Writer) Table { return Table{to, new([][]string)} }

// Row adds a row.
func (t Table) Row(cells ...string) {
	line := make([]string, len(cells))
	for i, c := range cells {
		line[i] = terminal.Line(c)
	}
	*t.rows = append(*t.rows, line)
}

// Flush prints the rows.
func (t Table) Flush() error {
	columns := 0
	if on, ok := t.to.(interface{ Size() (columns, rows int) }); ok {
		columns, _ = on.Size()
	}
	_, err := io.WriteString(t.to, tableText(*t.rows, columns))
	*t.rows = nil
	return err
}

// tableText formats rows. columns is the width to fit in; 0: any.
func tableText(rows [][]string, columns int) string {
	widths := columnWidths(rows)
	if columns > 0 {
		widths = fitted(widths, columns-columnGap*max(0, len(widths)-1))
	}
	var b strings.Builder
	for _, r := range rows {
		parts := make([][]string, len(r))
		lines, before := 1, 0
		for i, c := range r {
			parts[i] = []string{c}
			if last := i == len(r)-1; columns > 0 && last {
				parts[i] = broken(c, columns-before, true)
			} else if columns > 0 {
				parts[i] = broken(c, widths[i], false)
			}
			before += widths[i] + columnGap
			lines = max(lines, len(parts[i]))
		}
		for n := range lines {
			var line strings.Builder
			for i := range r {
				part := ""
				if n < len(parts[i]) {
					part = parts[i][n]
				}
				line.WriteString(part)
				if i < len(r)-1 {
					line.WriteString(strings.Repeat(" ", max(0, widths[i]-terminal.Columns(part))+columnGap))
				}
			}
			text := line.String()
			if lines > 1 {
				text = strings.TrimRight(text, " ")
			}
			b.WriteString(text + "\n")
		}
	}
	return b.String()
}

// columnWidths returns the width of each column. The last cell of a short row may reach beyond its column.
func columnWidths(rows [][]string) []int {
	count := 0
	for _, r := range rows {
		count = max(count, len(r))
	}
	widths := make([]int, count)
	for _, r := range rows {
		for i, c := range r {
			if i < len(r)-1 || i == count-1 {
				widths[i] = max(widths[i], terminal.Columns(c))
			}
		}
	}
	return widths
}

// minColumn is the least width that a column is narrowed to.
const minColumn = 6

// fitted narrows the widest columns to a common width until all fit in a number of columns, or none can be narrowed.
func fitted(widths []int, columns int) []int {
	for limit := slices.Max(append([]int{0}, widths...)); limit >= minColumn; limit-- {
		narrow, sum := make([]int, len(widths)), 0
		for i, w := range widths {
			narrow[i] = min(w, limit)
			sum += narrow[i]
		}
		if sum <= columns {
			for i, w := range widths { // what is left goes to the first of them
				more := min(w-narrow[i], columns-sum)
				narrow[i] += more
				sum += more
			}
			return narrow
		}
	}
	return widths
}

// broken breaks a cell into lines of at most some columns: after a space or a punctuation mark if there is one in the
// second half of the line, otherwise anywhere. In the last column it breaks only between words, so that a digest can be
// copied: the terminal itself wraps it.
func broken(cell string, columns int, last bool) (lines []string) {
	indent := cell[:len(cell)-len(strings.TrimLeft(cell, " "))]
	for terminal.Columns(cell) > columns && columns > 0 {
		at, end, width := 0, 0, 0
		for i, r := range cell {
			if width += terminal.Columns(string(r)); width > columns && i > 0 {
				break
			}
			end = i + len(string(r))
			if r == ' ' || !last && unicode.IsPunct(r) && r != '"' {
				at = end
			}
		}
		if next := cell[end:]; strings.HasPrefix(next, " ") {
			at = end
		}
		word := strings.IndexByte(cell[end:], ' ')
		switch {
		case last && at <= len(indent) && word < 0: // one long word
			return append(lines, cell)
		case last && at <= len(indent):
			at = end + word
		case !last && at <= end/2:
			at = end
		}
		lines = append(lines, strings.TrimRight(cell[:at], " "))
		rest := strings.TrimLeft(cell[at:], " ")
		if cell = indent + rest; rest == "" {
			return lines
		}
		if len(indent) >= columns {
			indent = ""
		}
	}
	return append(lines, cell)
}
