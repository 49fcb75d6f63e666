package cmd

import (
	"github.com/ingotml/ingot/modelfile"
	"github.com/spf13/pflag"
)

// addParameterFlags adds the flags of the table of parameters.
func addParameterFlags(f *pflag.FlagSet) {
	for _, p := range modelfile.Parameters() {
		switch {
		case p.Flag.Name == "":
		case p.Type == modelfile.Float:
			f.Float64(p.Flag.Name, float64(p.Flag.Default), p.Flag.Help)
		case p.Type == modelfile.Int:
			f.Int(p.Flag.Name, p.Flag.Default, p.Flag.Help)
		case p.Type == modelfile.Bool:
			f.Bool(p.Flag.Name, p.Flag.Default != 0, p.Flag.Help)
		case p.Type == modelfile.Strings:
			f.StringArray(p.Flag.Name, nil, p.Flag.Help)
		}
	}
}

// flagParameters returns the parameters that flags set, by their Modelfile names.
func flagParameters(f *pflag.FlagSet) map[string]any {
	set := map[string]any{}
	for _, p := range modelfile.Parameters() {
		if p.Flag.Name == "" || !f.Changed(p.Flag.Name) {
			continue
		}
		// The flags have these types, so that reading them does not fail.
		switch p.Type {
		case modelfile.Float:
			set[p.Name], _ = f.GetFloat64(p.Flag.Name)
		case modelfile.Int:
			set[p.Name], _ = f.GetInt(p.Flag.Name)
		case modelfile.Bool:
			set[p.Name], _ = f.GetBool(p.Flag.Name)
		case modelfile.Strings:
			set[p.Name], _ = f.GetStringArray(p.Flag.Name)
		}
	}
	return set
}
