package run

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/modelfile/parameters"
	"github.com/spf13/pflag"
)

// addParameterFlags adds the flags of the table of parameters.
func addParameterFlags(f *pflag.FlagSet) {
	for _, p := range parameters.All() {
		switch {
		case p.Flag.Name == "":
		case p.Type == parameters.Float:
			f.Float64(p.Flag.Name, float64(p.Flag.Default), p.Flag.Help)
		case p.Type == parameters.Int:
			f.Int(p.Flag.Name, p.Flag.Default, p.Flag.Help)
		case p.Type == parameters.Bool:
			f.Bool(p.Flag.Name, p.Flag.Default != 0, p.Flag.Help)
		case p.Type == parameters.Strings:
			f.StringArray(p.Flag.Name, nil, p.Flag.Help)
		}
		if l := f.Lookup(p.Flag.Name); l != nil && p.DefaultText() != "" {
			l.DefValue = p.DefaultText() // shown only: a flag that is not given leaves the image's value
		}
	}
}

// checkParameters returns an error if a flag's number is outside the range of its parameter.
func checkParameters(f *pflag.FlagSet) error {
	for _, p := range parameters.All() {
		if p.Flag.Name == "" || !f.Changed(p.Flag.Name) {
			continue
		}
		number, err := f.GetFloat64(p.Flag.Name)
		if p.Type == parameters.Int {
			var whole int
			whole, err = f.GetInt(p.Flag.Name)
			number = float64(whole)
		}
		if err != nil {
			continue // not a number
		}
		if err := p.Check(number); err != nil {
			return cli.Usagef("--%s %s %v", p.Flag.Name, f.Lookup(p.Flag.Name).Value, err)
		}
	}
	return nil
}

// allParameters formats the parameters that are set, and then the defaults of the others.
func allParameters(set map[string]any) string {
	var b strings.Builder
	b.WriteString(settings.ParameterText(set))
	for _, p := range parameters.All() {
		if _, isSet := set[p.Name]; !isSet && p.DefaultText() != "" {
			fmt.Fprintf(&b, "%s %s (default)\n", p.Name, p.DefaultText())
		}
	}
	return b.String()
}

// flagParameters returns the parameters that flags set, by their Modelfile names.
func flagParameters(f *pflag.FlagSet) map[string]any {
	set := map[string]any{}
	for _, p := range parameters.All() {
		if p.Flag.Name == "" || !f.Changed(p.Flag.Name) {
			continue
		}
		// The flags have these types, so that reading them does not fail.
		switch p.Type {
		case parameters.Float:
			set[p.Name], _ = f.GetFloat64(p.Flag.Name)
		case parameters.Int:
			set[p.Name], _ = f.GetInt(p.Flag.Name)
		case parameters.Bool:
			set[p.Name], _ = f.GetBool(p.Flag.Name)
		case parameters.Strings:
			set[p.Name], _ = f.GetStringArray(p.Flag.Name)
		}
	}
	return set
}
