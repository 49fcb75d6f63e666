package modelfile

import (
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/modelfile/parameters"
)

// Params returns the parameters that the file sets, by name, as int64, float64, bool or []string. Deprecated parameters
// are omitted with a warning.
func (f *File) Params() (params map[string]any, warnings []string, err error) {
	params = map[string]any{}
	for _, c := range f.All(Parameter) {
		p, ok := parameters.Lookup(c.Key)
		if !ok {
			return nil, nil, f.Errorf(c, "unknown parameter")
		}
		v, msg := parameters.Parse(c.Key, c.Value)
		if msg != "" {
			return nil, nil, f.Errorf(c, "%s", msg)
		}
		switch {
		case p.Deprecated:
			warnings = append(warnings, f.Errorf(c, "the parameter is deprecated and has no effect").Error())
		case p.Type == parameters.Strings:
			list, _ := params[c.Key].([]string)
			if len(list) == limits.Stops {
				return nil, nil, f.Errorf(c, "parameter %s has more than %d texts", c.Key, limits.Stops)
			}
			params[c.Key] = append(list, v.(string))
		default:
			params[c.Key] = v
		}
	}
	return params, warnings, nil
}
