package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/runtime"
)

// setting is one without an argument.
func setting(name, help string, set func(s *session)) sessionCommand {
	return sessionCommand{name, "", help, func(s *session, _ context.Context, rest string) error {
		if err := noWords(rest, name); err != nil {
			return err
		}
		set(s)
		return nil
	}}
}

// sessionSettings are what /set changes.
func sessionSettings() []sessionCommand {
	return []sessionCommand{
		{"/set parameter", "[NAME VALUE]", "a parameter of generation; without a name, a list of them", (*session).setParameter},
		{"/set system", "TEXT", `the system text; in """ where it has several lines, and empty to have none`, (*session).setSystem},
		{"/set think", "[LEVEL]", "have the model think before it answers: " + strings.Join(thinkLevels, ", "), (*session).setThink},
		setting("/set nothink", "have it answer at once", func(s *session) { s.o.think = "off" }),
		{"/set format", "FORMAT", "what answers look like: json, a schema, regex:PATTERN, ebnf:GRAMMAR, or a file with one", (*session).setFormat},
		setting("/set noformat", "any text", func(s *session) { s.format = runtime.Format{} }),
		setting("/set verbose", "show statistics after each answer", func(s *session) { s.o.verbose = true }),
		setting("/set quiet", "show none", func(s *session) { s.o.verbose = false }),
		setting("/set wordwrap", "break lines between words", func(s *session) { s.columns = s.terminalColumns }),
		setting("/set nowordwrap", "leave lines as they are", func(s *session) { s.columns = nil }),
		setting("/set history", "keep what is said for the keys Up and Down", func(s *session) { s.history.Off = false }),
		setting("/set nohistory", "do not keep it", func(s *session) { s.history.Off = true }),
	}
}

func (s *session) setSystem(_ context.Context, rest string) error {
	s.system = unquote(rest)
	return nil
}

func (s *session) setThink(_ context.Context, rest string) error {
	switch {
	case rest == "":
		s.o.think = "on"
	case rest == "on" || rest == "off" || slices.Contains(thinkLevels, rest):
		s.o.think = rest
	default:
		return fmt.Errorf("think %q: want on, off, %s", rest, strings.Join(thinkLevels, ", "))
	}
	if !slices.Contains(s.entry.Image.Config.Capabilities, "thinking") && s.o.think != "off" {
		s.note("note: %s does not say that it can think", s.entry.Name)
	}
	return nil
}

func (s *session) setFormat(ctx context.Context, rest string) error {
	if rest == "" {
		return fmt.Errorf("usage: /set format FORMAT")
	}
	format, err := readFormat(ctx, rest)
	if err == nil {
		s.format = format
	}
	return err
}

// sessionParts are what /show shows.
func sessionParts() []sessionCommand {
	list := []sessionCommand{{"/show info", "", "what the model is", func(s *session, _ context.Context, _ string) error {
		return show(s.entry, s.style.Texts).print(s.app)
	}}}
	for _, p := range showParts {
		run := func(s *session, _ context.Context, _ string) error { return p.print(s.app, s.entry, s.style.Texts) }
		switch p.flag {
		case "system":
			run = func(s *session, _ context.Context, _ string) error {
				return s.printPart(s.entry, "system prompt", s.system)
			}
		case "parameters":
			run = func(s *session, _ context.Context, _ string) error {
				return s.printPart(s.entry, "parameters", convert.ParameterText(s.effective()))
			}
		}
		list = append(list, sessionCommand{"/show " + p.flag, "", p.help, run})
	}
	return list
}
