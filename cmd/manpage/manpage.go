// Package manpage writes manual pages in the man(7) macros from the commands of a cobra program.
//
// cobra's own generator parses the texts as Markdown, which loses line breaks, tables and angle brackets. These texts
// are plain: paragraphs are filled, and indented lines are kept verbatim. The output is deterministic.
package manpage

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Header holds the properties that all pages of a program share.
type Header struct {
	Date     string // such as 2026-01-02; may be empty
	Source   string // program and version
	Manual   string // title of the manual
	Sections []Section
}

// Section is a section at the end of each page, such as the environment.
type Section struct{ Title, Text string }

// Name returns the file name of a command's page, such as ingot-run.1.
func Name(c *cobra.Command) string { return title(c) + ".1" }

func title(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// Commands returns c and all commands below it that are neither hidden nor deprecated.
func Commands(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			list = append(list, Commands(sub)...)
		}
	}
	return list
}

// Write writes the page of a command.
func Write(to io.Writer, c *cobra.Command, h Header) error {
	w := page{bufio.NewWriter(to)}
	w.request("TH", strings.ToUpper(title(c)), "1", h.Date, h.Source, h.Manual)
	w.section("NAME")
	w.line(escape(title(c)) + ` \- ` + escape(c.Short))
	w.section("SYNOPSIS")
	w.synopsis(c)
	w.section("DESCRIPTION")
	if c.Long != "" {
		w.text(c.Long)
	} else {
		w.text(c.Short + ".")
	}
	w.commands(c)
	w.flags("OPTIONS", c.NonInheritedFlags())
	w.flags("OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		w.section("EXAMPLES")
		w.verbatim(strings.Split(c.Example, "\n"))
	}
	for _, s := range h.Sections {
		w.section(strings.ToUpper(s.Title))
		w.text(s.Text)
	}
	w.seeAlso(c)
	return w.Flush()
}

type page struct{ *bufio.Writer }

// line writes a line of escaped text.
func (w page) line(s string) {
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s // otherwise the line is a request
	}
	fmt.Fprintln(w, s)
}

func (w page) request(name string, args ...string) {
	fmt.Fprint(w, ".", name)
	for _, a := range args {
		fmt.Fprintf(w, ` "%s"`, strings.NewReplacer(`\`, `\e`, `"`, `\(dq`).Replace(a))
	}
	fmt.Fprintln(w)
}

func (w page) section(title string) { w.request("SH", title) }

func (w page) synopsis(c *cobra.Command) {
	if c.Runnable() {
		name, rest, _ := strings.Cut(strings.TrimPrefix(c.UseLine(), c.CommandPath()), " ")
		w.line(`\fB` + escape(c.CommandPath()) + `\fR` + escape(name) + " " + escape(rest))
	}
	if c.HasAvailableSubCommands() {
		if c.Runnable() {
			fmt.Fprintln(w, ".br")
		}
		w.line(`\fB` + escape(c.CommandPath()) + `\fR ` + "COMMAND")
	}
}

// text writes paragraphs. Lines that begin with white space are kept verbatim.
func (w page) text(s string) {
	var kept []string
	end := func() {
		if len(kept) > 0 {
			w.verbatim(kept)
			kept = nil
		}
	}
	for _, l := range strings.Split(strings.Trim(s, "\n"), "\n") {
		switch {
		case strings.HasPrefix(l, " ") || strings.HasPrefix(l, "\t"):
			kept = append(kept, l)
		case l == "" && len(kept) > 0: // an empty line ends a verbatim block
			end()
		case l == "":
			fmt.Fprintln(w, ".PP")
		default:
			end()
			w.line(escape(l))
		}
	}
	end()
}

func (w page) verbatim(lines []string) {
	fmt.Fprintln(w, ".PP\n.nf")
	for _, l := range lines {
		w.line(escape(l))
	}
	fmt.Fprintln(w, ".fi\n.PP")
}

func (w page) commands(c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	w.section("COMMANDS")
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			w.item(`\fB`+escape(sub.Name())+`\fR`, sub.Short)
		}
	}
}

func (w page) item(term, text string) {
	fmt.Fprintln(w, ".TP")
	w.line(term)
	w.line(escape(text))
}

func (w page) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	w.section(title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		term := `\fB` + escape("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			term = `\fB` + escape("-"+f.Shorthand) + `\fR, ` + term
		}
		if name != "" {
			term += ` \fI` + escape(name) + `\fR`
		}
		if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "[]" {
			usage += " (default " + d + ")"
		}
		w.item(term, usage)
	})
}

func (w page) seeAlso(c *cobra.Command) {
	var names []string
	if c.HasParent() {
		names = append(names, title(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, title(sub))
		}
	}
	if len(names) == 0 {
		return
	}
	w.section("SEE ALSO")
	for i, n := range names {
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		w.line(`\fB` + escape(n) + `\fR(1)` + comma)
	}
}

// escape escapes the characters that roff interprets. Hyphens stay ASCII, so that they can be copied.
var escape = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "'", `\(aq`).Replace
