package cmd

import (
	"os"
	"slices"
	"strings"
)

// secretEndings are the endings of variables that hold secrets: INGOT_API_KEY, COSIGN_PASSWORD, HF_TOKEN...
var secretEndings = []string{"_KEY", "_PASSWORD", "_PASSWD", "_SECRET", "_TOKEN", "_CREDENTIALS"}

// childEnviron returns the environment for child processes that run models. They parse untrusted files and use no
// network, so they get no secrets.
func childEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		name = strings.ToUpper(name)
		return slices.ContainsFunc(secretEndings, func(end string) bool { return strings.HasSuffix(name, end) })
	})
}
