package terminal

import "strings"

// Fill breaks the lines of a help text between words, so that they fit in a number of columns. Lines without an indent
// form paragraphs, which are filled. An indented line stays a line: what does not fit continues below its last column,
// the text after the last gap of several spaces. A word that is wider than a line stays whole. With columns below 1 the
// text is unchanged.
func Fill(text string, columns int) string {
	if columns < 1 {
		return text
	}
	var b strings.Builder
	var words []string // of the current paragraph
	end := func() {
		if len(words) > 0 {
			fillWords(&b, words, "", 0, columns)
			words = nil
		}
	}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		line = strings.TrimRight(line, " ")
		switch {
		case line == "":
			end()
			b.WriteByte('\n')
		case line[0] != ' ' && line[0] != '\t':
			words = append(words, strings.Fields(line)...)
			if strings.HasSuffix(line, ":") { // a heading, or what a list follows
				end()
			}
		default:
			end()
			fillLine(&b, line, columns)
		}
	}
	end()
	return b.String()
}

// fillLine writes an indented line.
func fillLine(b *strings.Builder, line string, columns int) {
	if Columns(line) <= columns {
		b.WriteString(line + "\n")
		return
	}
	first := len(line) - len(strings.TrimLeft(line, " "))
	at := strings.LastIndex(line, "  ") + 2 // the start of the last column
	if at <= first {                        // there is no other column
		fillWords(b, strings.Fields(line), line[:first], first+2, columns)
		return
	}
	head, indent := line[:at], Columns(line[:at])
	if indent > columns*2/3 { // too little is left beside the other columns
		b.WriteString(strings.TrimRight(head, " ") + "\n")
		head, indent = strings.Repeat(" ", first+8), first+8
	}
	fillWords(b, strings.Fields(line[at:]), head, indent, columns)
}

// fillWords writes words after head, and further lines with an indent.
func fillWords(b *strings.Builder, words []string, head string, indent, columns int) {
	b.WriteString(head)
	at, begins := Columns(head), true
	for _, w := range words {
		n := Columns(w)
		switch {
		case begins:
		case at+1+n > columns:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(w)
		at, begins = at+n, false
	}
	b.WriteByte('\n')
}
