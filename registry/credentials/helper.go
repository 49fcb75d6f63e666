package credentials

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	helper "github.com/docker/docker-credential-helpers/client"
	"github.com/ingotml/ingot/child"
	"github.com/ingotml/ingot/registry/redact"
)

// helperPrefix begins the names of credential helper programs. tokenUser is the user name for which they store identity
// tokens.
const (
	helperPrefix = "docker-credential-"
	tokenUser    = "<token>"
)

// helperProgram returns a function that runs a credential helper. The helper's messages go to standard error, and it
// may prompt on the terminal.
func helperProgram(name string) (helper.ProgramFunc, error) {
	if strings.ContainsAny(name, `/\`) {
		return nil, fmt.Errorf("credential helper %q: the name contains a path; docker's config.json needs NAME "+
			"for a program %sNAME on the PATH",
			redact.Clip(name), helperPrefix)
	}
	return func(args ...string) helper.Program {
		c := child.Command(context.Background(), nil, helperPrefix+name, args...)
		c.Stderr = os.Stderr
		return helperRun{c}
	}, nil
}

// helperRun implements helper.Program.
type helperRun struct{ *child.Cmd }

func (h helperRun) Input(in io.Reader) { h.Stdin = in }
