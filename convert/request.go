package convert

import (
	"context"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/modelfile"
)

// request is the parsed content of a Modelfile.
type request struct {
	from     []modelfile.Command // all but one name projectors
	draft    *modelfile.Command
	adapters []modelfile.Command
	plan     plan.Options
	warnings []string
}

// single are the commands that a Modelfile may contain only once. A repeated one is an error, because the author would
// expect both lines to have an effect. FROM may name a projector too; see opener.model.
var single = []string{
	modelfile.Draft, modelfile.Template, modelfile.System,
	modelfile.Parser, modelfile.Renderer, modelfile.Requires,
}

// parseRequest reads a Modelfile's commands, and rejects unsupported ones. version is the program's.
func parseRequest(ctx context.Context, file *modelfile.File, version string) (request, error) {
	var req request
	once := map[string]bool{}
	for _, c := range file.Commands {
		if slices.Contains(single, c.Name) && once[c.Name] {
			return req, file.Errorf(c, "a second %s is not supported", c.Name)
		}
		once[c.Name] = true
		switch c.Name {
		case modelfile.From:
			req.from = append(req.from, c)
		case modelfile.Draft:
			req.draft = &c
		case modelfile.Parser:
			req.plan.Parser = c.Value
			if !parse.Known(c.Value) {
				known := strings.Join(parse.Names(), ", ")
				warning := file.Errorf(c, "this version does not know the parser (known: %s)", known)
				req.warnings = append(req.warnings, warning.Error())
			}
		case modelfile.Renderer:
			req.plan.Renderer = c.Value
		case modelfile.License:
			req.plan.Licenses = append(req.plan.Licenses, c.Value)
		case modelfile.Template:
			if _, err := chat.Parse(ctx, c.Value); err != nil {
				return req, file.Errorf(c, "%v", err)
			}
			req.plan.Template = &c.Value
		case modelfile.System:
			req.plan.System = &c.Value
		case modelfile.Message:
			req.plan.Messages = append(req.plan.Messages, settings.Message{Role: c.Key, Content: c.Value})
		case modelfile.Requires:
			req.plan.Requires = c.Value
			warning, err := checkVersion(file, c, version)
			if err != nil {
				return req, err
			}
			req.warnings = append(req.warnings, warning...)
		case modelfile.Adapter:
			req.adapters = append(req.adapters, c)
		case modelfile.Parameter: // below
		default:
			return req, file.Errorf(c, "%s is not supported by this version; remove the line", c.Name)
		}
	}
	if !once[modelfile.From] {
		return req, &modelfile.Error{File: file.Name, Msg: "no FROM line"}
	}
	params, warnings, err := file.Params()
	req.plan.Parameters, req.warnings = params, append(warnings, req.warnings...)
	return req, err
}
