package cmd

import (
	"os"
	"slices"
	"strings"
)

// secretEndings are how the names of variables end that hold secrets: INGOT_API_KEY, COSIGN_PASSWORD, HF_TOKEN...
var secretEndings = []string{"_KEY", "_PASSWORD", "_PASSWD", "_SECRET", "_TOKEN", "_CREDENTIALS"}

// childEnviron is the environment for processes of this program that run models: they read files from outside, ask
// nobody, and so get no secrets.
func childEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		name = strings.ToUpper(name)
		return slices.ContainsFunc(secretEndings, func(end string) bool { return strings.HasSuffix(name, end) })
	})
}
