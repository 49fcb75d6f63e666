package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/ingotml/ingot/modelfile/parameters"
)

// ParameterHelp lists the parameters that PARAMETER can set.
func ParameterHelp() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, p := range parameters.All() {
		if !p.Deprecated {
			help := p.Help
			if d := p.DefaultText(); d != "" {
				help += " (default " + d + ")"
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\n", p.Name, p.Values(), help)
		}
	}
	_ = w.Flush()
	return b.String()
}
