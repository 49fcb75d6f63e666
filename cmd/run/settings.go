package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/cmd/cli/view"
	"github.com/ingotml/ingot/runtime"
)

// setting returns a /set command without an argument.
func setting(name, help string, set func(s *session)) sessionCommand {
	return sessionCommand{name, "", help, func(s *session, _ context.Context, rest string) error {
		if err := noWords(rest, name); err != nil {
			return err
		}
		set(s)
		return nil
	}}
}

// sessionSettings are the /set commands.
func sessionSettings() []sessionCommand {
	return []sessionCommand{
		{"/set parameter", "[NAME VALUE]", "set a generation parameter, or list all", (*session).setParameter},
		{"/set system", "TEXT", `set the system prompt, in """ if it has several lines; empty: none`, (*session).setSystem},
		{"/set think", "[LEVEL]", "enable thinking; levels: " + strings.Join(thinkLevels, ", "), (*session).setThink},
		setting("/set nothink", "disable thinking", func(s *session) { s.o.think = "off" }),
		{"/set format", "FORMAT", "constrain responses: json, schema, regex:RE, ebnf:TEXT, lark:TEXT or file",
			(*session).setFormat},
		setting("/set noformat", "do not constrain responses", func(s *session) { s.format = runtime.Format{} }),
		setting("/set verbose", "show statistics after each response", func(s *session) { s.o.verbose = true }),
		setting("/set quiet", "do not show statistics", func(s *session) { s.o.verbose = false }),
		setting("/set wordwrap", "break lines between words", func(s *session) { s.columns = s.terminalColumns }),
		setting("/set nowordwrap", "do not break lines between words", func(s *session) { s.columns = nil }),
		setting("/set history", "keep messages for the keys Up and Down", func(s *session) { s.history.Off = false }),
		setting("/set nohistory", "do not keep messages", func(s *session) { s.history.Off = true }),
	}
}

func (s *session) setSystem(_ context.Context, rest string) error {
	s.system = unquote(rest)
	return nil
}

func (s *session) setThink(_ context.Context, rest string) error {
	level := cmp.Or(rest, "on")
	if level != "on" && level != "off" && !slices.Contains(thinkLevels, level) {
		return fmt.Errorf("think %q: want on, off, %s", rest, strings.Join(thinkLevels, ", "))
	}
	if err := checkThink(level, s.entry, s.style); err != nil {
		return err
	}
	s.o.think = level
	return nil
}

func (s *session) setFormat(ctx context.Context, rest string) error {
	if rest == "" {
		return fmt.Errorf("usage: /set format FORMAT")
	}
	format, err := readFormat(ctx, rest)
	if err == nil {
		s.format = s.o.schemas(format)
	}
	return err
}

// sessionParts are the /show commands.
func sessionParts() []sessionCommand {
	list := []sessionCommand{{"/show info", "", "the model's properties",
		func(s *session, _ context.Context, _ string) error {
			return view.Describe(s.entry, s.style.Texts).Print(s.App)
		}}}
	for _, p := range view.Parts {
		run := func(s *session, _ context.Context, _ string) error { return p.Print(s.App, s.entry, s.style.Texts) }
		switch p.Flag {
		case "system":
			run = func(s *session, _ context.Context, _ string) error {
				return view.PrintPart(s.App, s.entry, "system prompt", s.system)
			}
		case "parameters":
			run = func(s *session, _ context.Context, _ string) error {
				return view.PrintPart(s.App, s.entry, "parameters", allParameters(s.effective()))
			}
		}
		list = append(list, sessionCommand{"/show " + p.Flag, "", p.Help, run})
	}
	return list
}
