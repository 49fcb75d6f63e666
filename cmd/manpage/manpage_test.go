package manpage_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/cmd/manpage"
	"github.com/spf13/cobra"
)

func tree() (root, sub *cobra.Command) {
	run := func(*cobra.Command, []string) {}
	root = &cobra.Command{Use: "tool", Short: "Do things"}
	root.PersistentFlags().Bool("quiet", false, "say nothing")
	sub = &cobra.Command{
		Use: "do NAME", Short: "Do one", Run: run, Example: "  tool do 'a\\b'",
		Long: "Does <one>\nthing.\n\n.dots and 'quotes' begin lines.\nTable:\n\n  a-b  c\n  d    e\n\nEnd.",
	}
	sub.Flags().StringP("kind", "k", "x", "`type` of the thing")
	sub.Flags().Int("hid", 3, "hidden")
	_ = sub.Flags().MarkHidden("hid")
	root.AddCommand(sub, &cobra.Command{Use: "secret", Hidden: true, Run: run})
	return root, sub
}

const page = `.TH "TOOL-DO" "1" "2026-01-02" "tool 1.0" "manual of \(dqtool\(dq"
.SH "NAME"
tool\-do \- Do one
.SH "SYNOPSIS"
\fBtool do\fR NAME [flags]
.SH "DESCRIPTION"
Does <one>
thing.
.PP
\&.dots and \(aqquotes\(aq begin lines.
Table:
.PP
.PP
.nf
  a\-b  c
  d    e
.fi
.PP
End.
.SH "OPTIONS"
.TP
\fB\-k\fR, \fB\-\-kind\fR \fItype\fR
type of the thing (default x)
.SH "OPTIONS OF ALL COMMANDS"
.TP
\fB\-\-quiet\fR
say nothing
.SH "EXAMPLES"
.PP
.nf
  tool do \(aqa\eb\(aq
.fi
.PP
.SH "NOTES"
Last.
.SH "SEE ALSO"
\fBtool\fR(1)
`

func TestWrite(t *testing.T) {
	_, sub := tree()
	var b strings.Builder
	h := manpage.Header{Date: "2026-01-02", Source: "tool 1.0", Manual: `manual of "tool"`,
		Sections: []manpage.Section{{Title: "Notes", Text: "Last."}}}
	if err := manpage.Write(&b, sub, h); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(page, b.String()); d != "" {
		t.Error(d)
	}
}

func TestCommands(t *testing.T) {
	root, _ := tree()
	var names []string
	for _, c := range manpage.Commands(root) {
		names = append(names, manpage.Name(c))
	}
	if d := cmp.Diff([]string{"tool.1", "tool-do.1"}, names); d != "" {
		t.Error(d)
	}
}
